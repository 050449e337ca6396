#include "plugins/comm_mpi/mpi_world.h"

#include <dlfcn.h>

#include <string>

#include "gestalt/abi/comm.h"
#include "gestalt/dtype.hpp"
#include "gestalt/error.hpp"

namespace gestalt::comm_mpi {

void check_mpi(const char* what, int code) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(code, text, &length);
  throw Error(GESTALT_UNAVAILABLE,
              std::string("[comm ") + what + "] MPI reports: " + std::string(text, static_cast<size_t>(length)));
}

void join_mpi() {
  int started = 0;
  MPI_Initialized(&started);
  if (started) return;
  // Plugins load with local symbols, but the parts that MPI loads itself look for those of its library.
  Dl_info info;
  if (dladdr(reinterpret_cast<void*>(&MPI_Init_thread), &info) && info.dli_fname)
    dlopen(info.dli_fname, RTLD_NOW | RTLD_GLOBAL | RTLD_NOLOAD);
  int provided = MPI_THREAD_SINGLE;
  check_mpi("init", MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided));
  if (provided < MPI_THREAD_SERIALIZED)
    throw Error(GESTALT_UNAVAILABLE,
                "[comm] this MPI allows calls from one thread only, expected MPI_THREAD_SERIALIZED or more");
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
}

void leave_mpi() noexcept {
  int started = 0, ended = 0;
  MPI_Initialized(&started);
  MPI_Finalized(&ended);
  if (started && !ended) MPI_Finalize();
}

MPI_Datatype mpi_type(uint32_t dtype) {
  switch (dtype) {
    case kF64:
      return MPI_DOUBLE;
    case kF32:
    case kBF16:
    case kF16:
      return MPI_FLOAT;
    case kI64:
      return MPI_INT64_T;
    case kI32:
      return MPI_INT32_T;
    default:
      throw InvalidArgument("[comm] cannot reduce elements of type " + std::string(name_of(dtype)) +
                            ", expected f64, f32, bf16, f16, i64 or i32");
  }
}

MPI_Op mpi_op(int32_t reduction) {
  switch (reduction) {
    case GESTALT_REDUCE_SUM:
      return MPI_SUM;
    case GESTALT_REDUCE_MAX:
      return MPI_MAX;
    case GESTALT_REDUCE_MIN:
      return MPI_MIN;
    default:
      throw InvalidArgument("[comm] unknown reduction, got " + std::to_string(reduction) + ", expected 0 to 2");
  }
}

}  // namespace gestalt::comm_mpi
