// View ops as the builder records them: shapes, strides and offsets, and copies where strides do not allow a view.
#include "core/program/builder.h"
#include "tests/catch_compat.hpp"
#include "tests/thrown_error.h"

using namespace gestalt::core;
using Catch::Contains;
using gestalt::test::message_of;
using List = std::vector<int64_t>;

namespace {

struct Recording {
  OpRegistry ops;
  DimTable dims;
  Program program{ops, dims};
  Builder b{program, {}, GESTALT_PHASE_TRAIN};
  int64_t tokens = dims.named("tokens", 64);

  Value* x(std::initializer_list<int64_t> shape) {
    return program.input("batch:" + std::to_string(program.inputs().size()), TensorType(GESTALT_F32, shape));
  }
  Value* reshape(Value* v, List shape) { return b.op("core.reshape", {v}, {{"shape", shape}}); }
  Value* transpose(Value* v, int64_t i, int64_t j) { return b.op("core.transpose", {v}, {{"dim0", i}, {"dim1", j}}); }
  Value* slice(Value* v, int64_t dim, int64_t begin, int64_t end) {
    return b.op("core.slice", {v}, {{"dim", dim}, {"begin", begin}, {"end", end}});
  }
  Value* broadcast(Value* v, List shape) { return b.op("core.broadcast", {v}, {{"shape", shape}}); }
  size_t copies() const {
    size_t n = 0;
    for (const Node* node : program.nodes) n += node->op->name() == "core.copy";
    return n;
  }
};

List shape(const Value* v) { return {v->type.shape.begin(), v->type.shape.begin() + v->type.ndim}; }
List strides(const Value* v) { return {v->strides.begin(), v->strides.begin() + v->type.ndim}; }

}  // namespace

TEST_CASE("reshape of a contiguous tensor is a view, also over named dimensions") {
  Recording r;
  Value* x = r.x({r.tokens, 12});
  Value* y = r.reshape(x, {r.tokens, 3, 4});
  CHECK(strides(y) == List{12, 4, 1});
  Value* z = r.reshape(y, {r.dims.mul(r.tokens, 3), 4});
  CHECK(z->base == x);
  CHECK(strides(z) == List{4, 1});
  CHECK(r.reshape(z, {INT64_MIN, 12})->type.dim(0) == r.tokens);
  CHECK(r.reshape(x, {r.tokens, 1, 12, 1})->type.ndim == 4);
  CHECK(r.copies() == 0);
}

TEST_CASE("reshape splits and merges strided dimensions where strides chain") {
  Recording r;
  Value* x = r.x({r.tokens, 2, 6});
  Value* t = r.transpose(x, 0, 1);  // [2, tokens, 6], strides 6, 12, 1
  CHECK(strides(t) == List{6, 12, 1});
  CHECK(strides(r.reshape(t, {2, r.tokens, 2, 3})) == List{6, 12, 3, 1});
  Value* s = r.slice(x, 2, 0, 4);  // [tokens, 2, 4], strides 12, 6, 1
  Value* m = r.reshape(s, {r.dims.mul(r.tokens, 2), 4});
  CHECK(m->base == x);
  CHECK(strides(m) == List{6, 1});
  CHECK(r.copies() == 0);
}

TEST_CASE("reshape copies where strides do not chain, and the copy is what the view sees") {
  Recording r;
  Value* x = r.x({3, 4});
  Value* y = r.reshape(r.transpose(x, 0, 1), {12});
  CHECK(r.copies() == 1);
  CHECK(y->base != x);
  CHECK(y->base->producer->op->name() == "core.copy");
  CHECK(strides(y) == List{1});
  CHECK(y->offset == 0);
}

TEST_CASE("reshape of broadcast dimensions keeps stride 0") {
  Recording r;
  Value* x = r.broadcast(r.x({3}), {2, 5, 3});
  CHECK(strides(x) == List{0, 0, 1});
  CHECK(strides(r.reshape(x, {10, 3})) == List{0, 1});
  CHECK(r.copies() == 0);
  r.reshape(x, {30});
  CHECK(r.copies() == 1);
}

TEST_CASE("reshape to another number of elements is refused with the shapes") {
  Recording r;
  Value* x = r.x({r.tokens, 12});
  CHECK_THAT(message_of([&] { r.reshape(x, {r.tokens, 13}); }),
             Contains("tokens*12") && Contains("f32[tokens, 12]") && Contains("f32[tokens, 13]"));
  CHECK_THAT(message_of([&] { r.reshape(x, {INT64_MIN, 7}); }), Contains("do not divide"));
  CHECK_THAT(message_of([&] { r.reshape(x, {INT64_MIN, INT64_MIN}); }), Contains("more than one"));
  CHECK_THAT(message_of([&] { r.reshape(x, List(9, 1)); }), Contains("at most 8"));
}

TEST_CASE("slices start at an offset that adds up through views") {
  Recording r;
  Value* x = r.x({r.tokens, 10});
  Value* y = r.slice(x, 1, 2, 8);
  CHECK(shape(y) == List{r.tokens, 6});
  CHECK(y->offset == 2);
  Value* z = r.slice(r.transpose(y, 0, 1), 0, 1, 3);
  CHECK(z->offset == 3);
  CHECK(strides(z) == List{1, 10});
  CHECK(r.slice(r.x({6, 10}), -2, 2, 4)->offset == 20);
  CHECK(r.slice(x, 0, 4, r.tokens)->type.dim(0) == r.dims.sub(r.tokens, 4));
  CHECK_THAT(message_of([&] { r.slice(x, 1, 2, 11); }), Contains("[2, 11)") && Contains("size 10"));
  CHECK_THAT(message_of([&] { r.slice(x, 1, 5, 4); }), Contains("[5, 4)"));
  CHECK_THAT(message_of([&] { r.slice(x, 2, 0, 1); }), Contains("dim out of range, got 2"));
}

TEST_CASE("a slice beyond the largest size that a named dimension takes is refused") {
  Recording r;
  Value* x = r.x({r.tokens, 10});
  CHECK_THAT(message_of([&] { r.slice(x, 0, 0, 65); }), Contains("[0, 65)"));
  CHECK_THAT(message_of([&] { r.slice(x, 0, 0, r.dims.mul(r.tokens, 2)); }), Contains("tokens*2"));
  CHECK(r.slice(x, 0, 0, 64)->type.dim(0) == 64);
}

TEST_CASE("split_parts cuts one dimension into neighbours") {
  Recording r;
  Value* x = r.x({r.tokens, 10});
  const auto parts = r.b.apply("core.split_parts", {x}, {{"parts", List{4, 1, 5}}});
  REQUIRE(parts.size() == 3);
  CHECK(parts[0]->offset == 0);
  CHECK(parts[1]->offset == 4);
  CHECK(parts[2]->offset == 5);
  CHECK(shape(parts[2]) == List{r.tokens, 5});
  CHECK(strides(parts[2]) == List{10, 1});
  const int64_t rest = r.dims.sub(r.tokens, 8);
  const auto rows = r.b.apply("core.split_parts", {x}, {{"dim", int64_t{0}}, {"parts", List{8, rest}}});
  CHECK(rows[1]->offset == 80);
  CHECK(rows[1]->type.dim(0) == rest);
  CHECK_THAT(message_of([&] { r.b.apply("core.split_parts", {x}, {{"parts", List{4, 5}}}); }),
             Contains("sum to 9, expected the size 10"));
}

TEST_CASE("broadcast repeats by stride 0 and refuses what does not fit") {
  Recording r;
  Value* x = r.x({r.tokens, 1, 4});
  Value* y = r.broadcast(x, {2, r.tokens, 3, 4});
  CHECK(strides(y) == List{0, 4, 0, 1});
  CHECK(y->base == x);
  CHECK_THAT(message_of([&] { r.broadcast(x, {r.tokens, 3, 5}); }), Contains("cannot broadcast"));
  CHECK_THAT(message_of([&] { r.broadcast(x, {4}); }), Contains("cannot broadcast"));
}

TEST_CASE("a bogus negative size in a reshape is an error that names it") {
  Recording r;
  Value* x = r.x({3, 4});
  CHECK_THAT(message_of([&] { r.reshape(x, {-77, 4}); }), Contains("-77"));
}

TEST_CASE("infer of a view op tells the type even where a copy is needed") {
  Recording r;
  Value* t = r.transpose(r.x({3, 4}), 0, 1);
  const OpDef& op = r.ops.get("core.reshape");
  const std::vector<Value*> in = {t};
  const Attrs attrs = op.schema.complete({{"shape", List{12}}});
  InferContext c(op, "", in, attrs, r.dims);
  op.infer(c);
  REQUIRE(c.outputs.size() == 1);
  CHECK(c.outputs[0] == TensorType(GESTALT_F32, {12}));
}

TEST_CASE("wrong inputs of an op name it, its place and the schema") {
  Recording r;
  r.b.path = "model.mlp";
  Value* x = r.x({3, 4});
  CHECK_THAT(message_of([&] { r.b.op("core.add", {x}); }), Contains("[core.add at model.mlp] got 1 inputs"));
  CHECK_THAT(message_of([&] { r.b.op("core.add", {nullptr, x}); }), Contains("input 'a' is absent"));
  CHECK_THAT(message_of([&] { r.b.op("core.concat", {x, nullptr}, {{"dim", int64_t{0}}}); }), Contains("is absent"));
  CHECK_THAT(message_of([&] { r.b.op("core.ad", {x, x}); }), Contains("nearest: core.add"));
  CHECK_THAT(message_of([&] { r.b.op("core.concat", {}, {{"dim", int64_t{0}}}); }), Contains("no inputs"));
}
