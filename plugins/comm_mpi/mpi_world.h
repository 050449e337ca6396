#pragma once

#include <mpi.h>

#include <cstdint>

namespace gestalt::comm_mpi {

// Throws what MPI says of an error code.
void check_mpi(const char* what, int code);

// Starts MPI on first use; once in a process.
void join_mpi();
// Before the process ends. Nothing where MPI was never started or has been aborted.
void leave_mpi() noexcept;

MPI_Datatype mpi_type(uint32_t dtype);  // f32 for bf16 and f16, which travel converted
MPI_Op mpi_op(int32_t reduction);

}  // namespace gestalt::comm_mpi
