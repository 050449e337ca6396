#include "core/tensor/dtype.h"

#include "core/base/error.h"
#include "tests/catch_compat.hpp"

namespace gestalt::core {

TEST_CASE("every dtype has a name, a size and an accumulation type") {
  struct Row {
    DType dtype;
    const char* name;
    uint64_t size;
    DType accumulation;
  };
  for (const Row& r : {Row{GESTALT_F32, "f32", 4, GESTALT_F32}, Row{GESTALT_F64, "f64", 8, GESTALT_F64},
                       Row{GESTALT_BF16, "bf16", 2, GESTALT_F32}, Row{GESTALT_F16, "f16", 2, GESTALT_F32},
                       Row{GESTALT_I32, "i32", 4, GESTALT_I64}, Row{GESTALT_I64, "i64", 8, GESTALT_I64},
                       Row{GESTALT_U8, "u8", 1, GESTALT_I64}, Row{GESTALT_BOOL, "bool", 1, GESTALT_I64}}) {
    CAPTURE(r.name);
    CHECK(dtype_name(r.dtype) == r.name);
    CHECK(parse_dtype(r.name) == r.dtype);
    CHECK(dtype_size(r.dtype) == r.size);
    CHECK(accumulation_dtype(r.dtype) == r.accumulation);
  }
}

TEST_CASE("an unknown dtype name is refused with the key and the value") {
  try {
    parse_dtype("float32", "model.dtype");
    FAIL("accepted");
  } catch (const Error& e) {
    CHECK(e.code() == GESTALT_INVALID_ARGUMENT);
    CHECK(e.message().find("[model.dtype]") == 0);
    CHECK(e.message().find("\"float32\"") != std::string::npos);
  }
}

TEST_CASE("an unknown dtype word has no size but can be named in a message") {
  CHECK_THROWS_AS(dtype_size(7), Error);
  CHECK(dtype_name(7) == "unknown");
  CHECK_FALSE(is_dtype(7));
}

}  // namespace gestalt::core
