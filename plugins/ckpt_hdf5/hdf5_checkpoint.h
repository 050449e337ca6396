#pragma once

#include "gestalt/checkpoint.hpp"

namespace gestalt::ckpt_hdf5 {

// A shard file is one HDF5 file of format 1.10: a dataset a tensor, chunked with Fletcher-32 checksums, pieces with their
// place in the logical tensor as attributes.
class Hdf5Checkpoint : public Checkpoint {
 public:
  static constexpr std::string_view name = "gestalt.hdf5";
  static constexpr std::string_view extension = ".h5";

  Hdf5Checkpoint(Host, Attrs);

  std::unique_ptr<ShardWriter> open_write(std::string_view path) override;
  std::unique_ptr<ShardReader> open_read(std::string_view path) override;
};

}  // namespace gestalt::ckpt_hdf5
