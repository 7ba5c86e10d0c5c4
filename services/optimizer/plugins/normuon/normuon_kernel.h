#pragma once

#include "common/optimizer_abi/ganymede_optimizer.h"

namespace ganymede::normuon {

/// NorMuon's update with the widest vectors that this CPU has. Bits depend neither on the vector width nor on how a run
/// is cut into chunks. State slots: momentum, then the second moment of each row. Thread-safe.
///
/// The first phase of a chunk: momentum and what is to be orthogonalised, as Muon's.
void update(const GanymedeStep& step, const GanymedeChunk& chunk);
/// A whole orthogonalised matrix: the second moment of its rows, and the matrix divided by its root and brought to the
/// Frobenius norm 0.2 · sqrt(rows · columns). A matrix of zeros stays one.
void normalise(const GanymedeStep& step, const GanymedeMatrix& matrix);
/// The second phase of a chunk: the master, less the rate times the normalised matrix.
void apply(const GanymedeStep& step, const GanymedeChunk& chunk);

}  // namespace ganymede::normuon
