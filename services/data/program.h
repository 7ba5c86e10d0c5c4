#pragma once

namespace ganymede::data {

/// `main` of ganymede-data: `--run DIR --rank R` serves one rank of a run; `pack`, `inspect`, `encode`, `decode` and
/// `rows` work on datasets. Returns the exit code; an error is one line on stderr.
int program(int argc, char** argv);

}  // namespace ganymede::data
