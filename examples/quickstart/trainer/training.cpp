#include "training.hpp"

#include <fmt/format.h>

#include <bit>
#include <chrono>
#include <cmath>
#include <exception>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>
#include <vector>

#include "allreduce.hpp"
#include "checkpoint.hpp"
#include "data.hpp"
#include "errors.hpp"
#include "event_file.hpp"
#include "log_line.hpp"
#include "model.hpp"
#include "optimizer.hpp"
#include "trace_writer.hpp"

namespace quickstart {
namespace {

namespace fs = std::filesystem;
using SystemClock = std::chrono::system_clock;
using MonotonicClock = std::chrono::steady_clock;

/// What all ranks share. Everything in it is immutable or synchronises itself.
struct World {
  const Settings& settings;
  const Text& text;
  ModelShape shape;
  nlohmann::json identity;
  std::optional<Checkpoint> start;
  AllReduce& all_reduce;
  std::ostream& log;              ///< the last rank's alone
  const std::atomic<bool>& stop;  ///< any rank may see it first; all act on it together
};

/// Only the last rank writes these, as in Megatron-LM.
struct Outputs {
  std::ostream& log;
  EventFile events;

  void iteration(const IterationFacts& facts, bool first) {
    const auto now = SystemClock::now();
    log << log_line(facts, now) << std::endl;
    events.scalar("learning-rate", static_cast<float>(facts.learning_rate), facts.iteration, now);
    events.scalar("lm loss", facts.loss, facts.iteration, now);
    events.scalar("grad-norm", facts.grad_norm, facts.iteration, now);
    events.scalar("batch-size", static_cast<float>(facts.global_batch_size), facts.iteration, now);
    events.scalar("loss-scale", 1.0F, facts.iteration, now);
    events.scalar("num-zeros", static_cast<float>(facts.num_zeros), facts.iteration, now);
    if (!first) {  // its time has the start-up in it
      events.scalar("iteration-time", static_cast<float>(facts.seconds), facts.iteration, now);
      for (std::size_t rank = 0; rank < facts.rank_seconds.size(); ++rank) {
        events.scalar("rank-time/" + std::to_string(rank), facts.rank_seconds[rank],
                      facts.iteration, now);
      }
    }
    events.flush();
    if (!log) {
      throw OutputError("standard output cannot be written");
    }
  }
};

void flip_lowest_bit(float& value) {
  value = std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) ^ 1U);
}

/// One rank's training, from the first iteration to the last.
class Rank {
 public:
  Rank(const World& world, unsigned rank)
      : w_(world),
        s_(world.settings),
        rank_(rank),
        model_(world.shape, s_.seed),
        adam_(model_.weights().size()) {
    if (w_.start) {
      load_checkpoint(*w_.start, model_.parameters(), state());
      done_ = w_.start->iteration;
      if (s_.no_load_optim) adam_ = Adam(model_.weights().size());
    }
    if (s_.trace != Trace::none) {
      trace_.emplace(s_.output / "traces", rank, level_of(s_.trace), s_.capture_plan);
    }
    if (rank == s_.ranks - 1) {
      outputs_.emplace(Outputs{w_.log, EventFile(s_.output / "tensorboard", SystemClock::now())});
    }
  }

  /// True when it was stopped early.
  bool run() {
    const std::int64_t first = done_ + 1;
    while (done_ < s_.train_iters) {
      const auto begin = MonotonicClock::now();
      IterationFacts facts;
      facts.iteration = done_ + 1;
      const bool stopping = iteration(facts);
      done_ = facts.iteration;
      if (trace_) {
        trace_->flush();
      }
      facts.seconds = std::chrono::duration<double>(MonotonicClock::now() - begin).count();
      if (outputs_) {
        outputs_->iteration(facts, done_ == first);
      }
      const bool due = s_.save_interval != 0 && done_ % s_.save_interval == 0;
      if (due || stopping || done_ == s_.train_iters) {
        save();
      }
      if (stopping && done_ < s_.train_iters) {
        return true;
      }
    }
    return false;
  }

 private:
  /// One step; true when some rank has been asked to stop.
  bool iteration(IterationFacts& facts) {
    const auto begin = MonotonicClock::now();
    const std::int64_t number = facts.iteration;
    const auto global = static_cast<std::uint64_t>(s_.global_batch_size());
    const std::uint64_t first = static_cast<std::uint64_t>(number - 1) * global +
                                std::uint64_t{rank_} * s_.micro_batch_size;
    Batch batch = w_.text.batch(s_.seed, first, s_.micro_batch_size, s_.context);
    if (plants(Planted::tokens, number)) {
      batch.inputs.front() =
          (batch.inputs.front() + 1) % static_cast<std::int32_t>(w_.text.vocabulary());
    }
    if (trace_) {
      trace_->event({number, {}, "train"}, "iteration.begin");
      trace_->tensor({number, 0, "data"}, "tokens", batch.inputs, {batch.size, batch.context});
      trace_->tensor({number, 0, "data"}, "labels", batch.targets, {batch.size});
    }

    const float loss = model_.forward(batch);
    if (trace_) {
      trace_->scalar({number, 0, "forward"}, "loss", loss);
    }
    if (!std::isfinite(loss)) {
      throw TrainingError(
          fmt::format("rank {}: found {} in local forward loss calculation at "
                      "iteration {}",
                      rank_, std::isnan(loss) ? "NaN" : "Inf", number));
    }
    model_.backward(batch);
    if (plants(Planted::gradient, number)) {
      flip_lowest_bit(model_.gradient().front());
    }
    trace_parameters({number, 0, "backward"}, "grad.", model_.gradient());
    const std::chrono::duration<float> own_work = MonotonicClock::now() - begin;

    const Site reduce{number, {}, "grad-reduce"};
    if (trace_) {
      trace_->all_reduce(reduce, "gradient", model_.gradient(), QTRACE_INPUT);
    }
    w_.all_reduce.sum(rank_, model_.gradient());
    if (plants(Planted::sum, number)) {
      flip_lowest_bit(model_.gradient().front());
    }
    if (trace_) {
      trace_->all_reduce(reduce, "gradient", model_.gradient(), QTRACE_OUTPUT);
    }
    const float share = 1.0F / static_cast<float>(s_.ranks);
    for (float& value : model_.gradient()) {
      value *= share;
    }
    trace_parameters(reduce, "grad.", model_.gradient());
    // The wish to stop travels with the loss, so that all ranks stop after the same iteration, and
    // so does what each rank took before it waited: a sum of one value and zeros is that value.
    std::vector<float> together(2 + s_.ranks, 0.0F);
    together[0] = loss;
    together[1] = w_.stop.load() ? 1.0F : 0.0F;
    together[2 + rank_] = own_work.count();
    w_.all_reduce.sum(rank_, together);
    facts.rank_seconds.assign(together.begin() + 2, together.end());

    const GradientFacts gradient = facts_of(model_.gradient());
    if (!std::isfinite(gradient.norm)) {
      throw TrainingError(
          fmt::format("rank {}: the gradient norm is not finite at iteration {}", rank_, number));
    }
    const auto limit = static_cast<float>(s_.clip_grad);
    const float scale = limit > 0 && gradient.norm > limit ? limit / gradient.norm : 1.0F;
    facts.learning_rate = learning_rate(s_, number);
    adam_.step(model_.weights(), model_.gradient(), facts.learning_rate, scale, number);

    facts.train_iters = s_.train_iters;
    facts.consumed_samples = number * static_cast<std::int64_t>(global);
    facts.global_batch_size = s_.global_batch_size();
    facts.loss = together[0] * share;
    facts.grad_norm = gradient.norm;
    facts.num_zeros = gradient.zeros;
    if (trace_) {
      trace_->scalar({number, {}, "train"}, "lm loss", facts.loss);
      trace_->scalar({number, {}, "train"}, "grad-norm", facts.grad_norm);
      trace_->count({number, {}, "train"}, "num-zeros", facts.num_zeros);
      trace_->number({number, {}, "train"}, "learning-rate", facts.learning_rate);
      trace_parameters({number, {}, "optimizer"}, "", model_.weights(), QTRACE_STATE);
      trace_->event({number, {}, "train"}, "iteration.end");
    }
    return together[1] > 0;
  }

  [[nodiscard]] bool plants(Planted what, std::int64_t number) const {
    return s_.plant && s_.plant->what == what && s_.plant->rank == rank_ &&
           s_.plant->iteration == number;
  }

  void trace_parameters(const Site& site, const std::string& prefix, std::span<const float> flat,
                        qtrace_kind kind = QTRACE_TENSOR) {
    if (trace_) {
      for (const Parameter& p : model_.parameters()) {
        trace_->tensor(site, prefix + p.name, flat.subspan(p.offset, p.size), p.shape, kind);
      }
    }
  }

  void save() {
    const fs::path root = s_.output / "checkpoints";
    save_share(checkpoint_folder(root, done_), rank_, s_.ranks, model_.parameters(), state());
    float arrived = 1;
    w_.all_reduce.sum(rank_, std::span(&arrived, 1));  // every share is on disk
    if (outputs_) {
      complete_checkpoint(root, done_, s_.ranks, w_.identity);
      w_.log << "  successfully saved checkpoint from iteration " << fmt::format("{:7}", done_)
             << " to " << root.string() << std::endl;
    }
  }

  ReplicaState state() { return {model_.weights(), adam_.mean(), adam_.square()}; }

  const World& w_;
  const Settings& s_;
  unsigned rank_;
  Model model_;
  Adam adam_;
  std::int64_t done_ = 0;  ///< iterations
  std::optional<TraceWriter> trace_;
  std::optional<Outputs> outputs_;
};

/// A folder that holds a run already is left alone: two runs in one trace would be neither.
void make_output_folders(const Settings& settings) {
  std::error_code error;
  for (const char* name : {"traces", "tensorboard", "checkpoints"}) {
    if (fs::exists(settings.output / name, error)) {
      throw InputError("--output: " + settings.output.string() +
                       " holds a run already; give a new folder");
    }
  }
  fs::create_directories(settings.output / "tensorboard", error);
  if (!error && settings.trace != Trace::none) {
    fs::create_directories(settings.output / "traces", error);
  }
  if (error) {
    throw OutputError("--output: " + settings.output.string() +
                      " cannot be made: " + error.message());
  }
}

}  // namespace

Ending train(const Settings& settings, std::ostream& log, const std::atomic<bool>& stop) {
  const Text text = Text::read(settings.text);
  if (text.length() <= settings.context) {
    throw InputError(fmt::format("the text {} has {} characters; --context {} needs more",
                                 settings.text.string(), text.length(), settings.context));
  }
  const ModelShape shape{text.vocabulary(), settings.context, settings.embedding, settings.hidden};
  const Parameter last = parameters_of(shape).back();
  const std::size_t size = last.offset + last.size;
  const auto all_reduce = make_all_reduce(settings.reduction, settings.ranks, size);
  World world{settings, text,        shape, identity_of(settings, shape, text.sha256()),
              {},       *all_reduce, log,   stop};
  if (settings.resume) {
    world.start = open_checkpoint(settings.ckpt_step == 0
                                      ? *settings.resume
                                      : checkpoint_folder(*settings.resume, settings.ckpt_step),
                                  world.identity);
    if (world.start->iteration >= settings.train_iters) {
      throw InputError(
          fmt::format("--resume: the checkpoint is of iteration {}; nothing is left "
                      "to train up to --train-iters {}",
                      world.start->iteration, settings.train_iters));
    }
  }
  make_output_folders(settings);
  if (settings.trace != Trace::none) {
    write_trace_manifest(settings.output / "traces", settings, world.identity.dump(), text.sha256(),
                         world.start ? std::optional(world.start->iteration) : std::nullopt);
  }

  log << "using world size: " << settings.ranks << ", data-parallel size: " << settings.ranks
      << ", gradient reduction: " << name_of(settings.reduction) << "\n> setting random seeds to "
      << settings.seed << " ...\n > number of parameters on (tensor, pipeline) model parallel rank "
      << "(0, 0): " << size << "\n";
  if (world.start) {
    log << " loaded checkpoint from " << world.start->folder.string() << " at iteration "
        << world.start->iteration << "\n";
  }
  log << log_time(SystemClock::now()) << " training ..." << std::endl;

  std::mutex mutex;
  std::exception_ptr failure;
  std::atomic<bool> stopped = false;
  std::vector<std::thread> threads;
  for (unsigned number = 0; number < settings.ranks; ++number) {
    threads.emplace_back([&, number] {
      try {
        if (Rank(world, number).run()) {
          stopped = true;
        }
      } catch (const Cancelled&) {  // the rank that failed has said why
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!failure) {
          failure = std::current_exception();
        }
        all_reduce->cancel();
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  if (failure) {
    std::rethrow_exception(failure);
  }
  log << log_time(SystemClock::now())
      << (stopped ? " exiting program after receiving a signal" : " after training is done")
      << std::endl;
  return stopped ? Ending::stopped : Ending::finished;
}

}  // namespace quickstart
