// The expected numbers are those of the reference's schedules (max 3e-4, min 3e-5, warm-up 100, end 1000). Our update s is
// the reference's step s once warm-up is over; during warm-up and for inverse_square_root it is step s + 1.
#include "core/session/learning_rate.h"

#include "tests/catch_compat.hpp"
#include "tests/thrown_error.h"

using namespace gestalt::core;

namespace {
LearningRate rate(const std::string& schedule, const std::string& style = "exponential") {
  LearningRate r;
  r.lr = 3e-4;
  r.min_lr = 3e-5;
  r.schedule = schedule;
  r.warmup_steps = 100;
  r.decay_steps = 1000;
  r.wsd_decay_steps = 200;
  r.wsd_style = style;
  return r;
}
Approx near(double x) { return Approx(x).epsilon(1e-9); }
}  // namespace

TEST_CASE("warm-up rises to the full rate in every schedule, and never starts at zero") {
  for (const char* schedule : {"constant", "linear", "cosine", "inverse_square_root", "wsd"}) {
    const LearningRate r = rate(schedule);
    CHECK(r.at(0) == near(3e-6));
    CHECK(r.at(49) == near(1.5e-4));
    CHECK(r.at(99) == near(3e-4));
  }
}

TEST_CASE("schedules meet the reference's numbers") {
  CHECK(rate("constant").at(5000) == near(3e-4));
  CHECK(rate("linear").at(550) == near(1.65e-4));
  CHECK(rate("cosine").at(550) == near(1.65e-4));
  CHECK(rate("cosine").at(325) == near(3e-5 + 2.7e-4 * (1 + std::sqrt(0.5)) / 2));
  CHECK(rate("inverse_square_root").at(549) == near(1.279204298e-4));
  CHECK(rate("inverse_square_root").at(999) == near(9.486832981e-5));
  CHECK(rate("inverse_square_root").at(1'000'000) == near(3e-5));
  for (const char* schedule : {"linear", "cosine", "wsd"}) {
    CHECK(rate(schedule).at(1000) == near(3e-5));
    CHECK(rate(schedule).at(1'000'000) == near(3e-5));
  }
}

TEST_CASE("a stable phase holds the rate, then one of four decays follows") {
  for (const char* style : {"linear", "cosine", "exponential", "minus_sqrt"}) {
    CHECK(rate("wsd", style).at(100) == near(3e-4));
    CHECK(rate("wsd", style).at(800) == near(3e-4));
  }
  CHECK(rate("wsd", "linear").at(850) == near(2.325e-4));
  CHECK(rate("wsd", "linear").at(900) == near(1.65e-4));
  CHECK(rate("wsd", "cosine").at(850) == near(2.604594155e-4));
  CHECK(rate("wsd", "cosine").at(900) == near(1.65e-4));
  CHECK(rate("wsd", "exponential").at(850) == near(2.140840642e-4));
  CHECK(rate("wsd", "exponential").at(900) == near(1.418376618e-4));
  CHECK(rate("wsd", "minus_sqrt").at(850) == near(1.65e-4));
  CHECK(rate("wsd", "minus_sqrt").at(900) == near(1.090811691e-4));
}

TEST_CASE("without warm-up the first update has the full rate") {
  for (const char* schedule : {"constant", "linear", "cosine", "inverse_square_root", "wsd"}) {
    LearningRate r = rate(schedule);
    r.warmup_steps = 0;
    CHECK(r.at(0) == near(3e-4));
  }
}

TEST_CASE("an end that is not known yet means the full rate; an end inside warm-up the lowest after it") {
  LearningRate open = rate("cosine");
  open.decay_steps = 0;
  CHECK(open.at(123456) == near(3e-4));
  LearningRate early = rate("linear");
  early.decay_steps = 50;
  CHECK(early.at(99) == near(3e-4));
  CHECK(early.at(100) == near(3e-5));
}

TEST_CASE("a decay must know where it ends") {
  const auto config = Config::from_text("[optimizer]\nlr = 1e-3\nschedule = \"cosine\"\n", "x.toml");
  const auto e = gestalt::test::thrown_by([&] { LearningRate::from(config); });
  CHECK(e.code() == GESTALT_CONFIG_ERROR);
  CHECK_THAT(e.message(), Catch::Contains("optimizer.decay_steps") && Catch::Contains("'cosine'"));
}
