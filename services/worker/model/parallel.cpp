#include "services/worker/model/parallel.h"

/// MKL's thread count of the calling thread; returns the previous one (0: none was set). Absent where libtorch was
/// built with another BLAS library.
extern "C" [[gnu::weak]] int MKL_Set_Num_Threads_Local(int threads);

namespace ganymede::worker::model {

OneThread::OneThread() : blas_threads_(MKL_Set_Num_Threads_Local != nullptr ? MKL_Set_Num_Threads_Local(1) : 0) {}

OneThread::~OneThread() {
  if (MKL_Set_Num_Threads_Local != nullptr) MKL_Set_Num_Threads_Local(blas_threads_);
}

}  // namespace ganymede::worker::model
