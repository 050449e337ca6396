#pragma once

#include "gestalt/checkpoint.hpp"

namespace gestalt::ckpt_safetensors {

// A shard file is a plain safetensors file that other programs read too; where its pieces lie in their logical tensors
// is in the metadata. A file without that metadata holds whole tensors.
class SafetensorsCheckpoint : public Checkpoint {
 public:
  static constexpr std::string_view name = "gestalt.safetensors";
  static constexpr std::string_view extension = ".safetensors";

  SafetensorsCheckpoint(Host, Attrs) {}

  std::unique_ptr<ShardWriter> open_write(std::string_view path) override;
  std::unique_ptr<ShardReader> open_read(std::string_view path) override;
};

}  // namespace gestalt::ckpt_safetensors
