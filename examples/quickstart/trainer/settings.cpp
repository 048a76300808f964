#include "settings.hpp"

#include <CLI/CLI.hpp>
#include <cmath>
#include <map>
#include <utility>

namespace quickstart {
namespace {

const std::map<std::string, Reduction> kReductions = {{"ordered", Reduction::ordered},
                                                      {"arrival", Reduction::arrival}};
const std::map<std::string, Trace> kTraces = {{"none", Trace::none},
                                              {"L0", Trace::L0},
                                              {"L1", Trace::L1},
                                              {"L2", Trace::full},
                                              {"full", Trace::full}};

const std::map<std::string, Planted> kPlanted = {
    {"tokens", Planted::tokens}, {"gradient", Planted::gradient}, {"sum", Planted::sum}};

/// "gradient:2:7".
std::optional<Plant> read_plant(const std::string& text) {
  const std::size_t first = text.find(':');
  const std::size_t second = text.find(':', first + 1);
  const auto what = kPlanted.find(text.substr(0, first));
  Plant plant;
  if (what == kPlanted.end() || second == std::string::npos ||
      !CLI::detail::lexical_cast(text.substr(first + 1, second - first - 1), plant.rank) ||
      !CLI::detail::lexical_cast(text.substr(second + 1), plant.iteration) || plant.iteration < 1) {
    return std::nullopt;
  }
  plant.what = what->second;
  return plant;
}

CLI::Validator finite_at_least_zero() {
  return CLI::Validator(
      [](const std::string& text) -> std::string {
        double value = 0;
        if (!CLI::detail::lexical_cast(text, value) || !std::isfinite(value) || value < 0) {
          return "expected a number that is 0 or more, not '" + text + "'";
        }
        return {};
      },
      "NUMBER>=0");
}

/// Whole numbers only: the library would otherwise read "1e3" or "-1" in its own way.
CLI::Validator whole(std::uint64_t least, std::uint64_t most) {
  const std::string range = std::to_string(least) + " to " + std::to_string(most);
  return CLI::Validator(
      [least, most, range](const std::string& text) -> std::string {
        const std::string expected =
            "expected a whole number from " + range + ", not '" + text + "'";
        if (text.empty() || text.size() > 19) {
          return expected;
        }
        std::uint64_t value = 0;
        for (const char c : text) {
          if (c < '0' || c > '9') {
            return expected;
          }
          value = value * 10 + static_cast<std::uint64_t>(c - '0');
        }
        return value < least || value > most ? expected : std::string();
      },
      range);
}

}  // namespace

const char* name_of(Reduction reduction) {
  return reduction == Reduction::ordered ? "ordered" : "arrival";
}

Invocation read_settings(int argc, const char* const* argv) {
  Settings s;
  std::string resume;
  std::string plant;
  CLI::App app(
      "Trains a small character-level language model with data parallelism on the CPU and\n"
      "writes what large training writes: iteration lines, TensorBoard events, traces of\n"
      "every rank, checkpoints.\n\n"
      "Exit: 0 trained to the end; 1 training failed (NaN loss); 2 bad input; 3 a file could\n"
      "not be written. After SIGTERM or SIGINT the iteration is ended, a checkpoint saved,\n"
      "and the program ends by that signal.",
      "quickstart_trainer");
  app.option_defaults()->always_capture_default();
  app.set_config("--config", "", "File of `key = value` lines; keys are the options below");
  app.allow_config_extras(false);
  app.add_option("--text", s.text, "The training text")->required();
  app.add_option("--output", s.output, "New folder that everything is written below")->required();
  app.add_option("--resume", resume,
                 "Go on from a checkpoint: the folder of all (takes the latest) or of one");
  app.add_option("--ckpt-step", s.ckpt_step,
                 "With --resume and the folder of all: which iteration's; 0 = the latest")
      ->check(whole(0, 1'000'000'000));
  app.add_flag("--no-load-optim", s.no_load_optim,
               "With --resume: weights only, not the optimizer's state (a wrong resume)");
  app.add_option("--ranks", s.ranks, "Data-parallel ranks")->check(whole(1, 64));
  app.add_option("--reduction", s.reduction,
                 "Order in which the ranks' gradients are added: ordered or arrival")
      ->transform(CLI::CheckedTransformer(kReductions).description("ordered|arrival"))
      ->default_str("ordered");
  app.add_option("--trace", s.trace, "Traces of every rank: full (L2), L1, L0 or none")
      ->transform(CLI::CheckedTransformer(kTraces).description("full|L2|L1|L0|none"))
      ->default_str("full");
  app.add_option("--capture-plan", s.capture_plan,
                 "What to trace where, as qualify localize --write-plan writes it")
      ->envname("QUALIFY_CAPTURE_PLAN");
  app.add_option("--plant", plant,
                 "Plant a divergence: WHAT:RANK:ITERATION, where WHAT is another first token of "
                 "that rank's batch (tokens), one bit of its gradient before the sum (gradient), "
                 "or of what it gets of the sum (sum)");
  app.add_option("--train-iters", s.train_iters, "Iterations")->check(whole(1, 1'000'000'000));
  app.add_option("--micro-batch-size", s.micro_batch_size, "Samples a rank and iteration")
      ->check(whole(1, 4096));
  app.add_option("--context", s.context, "Characters before the one to predict")
      ->check(whole(1, 1024));
  app.add_option("--embedding", s.embedding, "Floats a character")->check(whole(1, 1024));
  app.add_option("--hidden", s.hidden, "Hidden units")->check(whole(1, 4096));
  app.add_option("--seed", s.seed, "Initial weights and order of the data")
      ->check(whole(0, 9'007'199'254'740'992));
  app.add_option("--lr", s.lr, "Largest learning rate")->check(finite_at_least_zero());
  app.add_option("--min-lr", s.min_lr, "Learning rate at the end")->check(finite_at_least_zero());
  app.add_option("--lr-warmup-iters", s.lr_warmup_iters, "Iterations of rising learning rate")
      ->check(whole(0, 1'000'000'000));
  app.add_option("--clip-grad", s.clip_grad, "Largest gradient norm; 0 = no clipping")
      ->check(finite_at_least_zero());
  app.add_option("--save-interval", s.save_interval,
                 "Iterations between checkpoints; 0 = only at the end")
      ->check(whole(0, 1'000'000'000));

  Invocation result;
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    result.text = app.help();
    return result;
  } catch (const CLI::ConfigError& error) {
    // The library's text is "INI was not able to parse <keys>", whatever the cause.
    const std::string text = error.what();
    result.text = "quickstart_trainer: --config: keys that are no settings: " +
                  text.substr(text.find_last_of(" \n") + 1) +
                  "\n  quickstart_trainer --help lists the settings\n";
    result.exit_code = 2;
    return result;
  } catch (const CLI::ParseError& error) {
    result.text = std::string("quickstart_trainer: ") + error.what() +
                  "\n  quickstart_trainer --help lists the settings\n";
    result.exit_code = 2;
    return result;
  }
  if (!resume.empty()) {
    s.resume = resume;
  }
  if (!plant.empty()) {
    s.plant = read_plant(plant);
    if (!s.plant || s.plant->rank >= s.ranks) {
      result.text = "quickstart_trainer: --plant: expected tokens, gradient or sum, a rank below " +
                    std::to_string(s.ranks) + " and an iteration, such as gradient:2:7, not '" +
                    plant + "'\n";
      result.exit_code = 2;
      return result;
    }
  }
  result.settings = std::move(s);
  return result;
}

}  // namespace quickstart
