#include <gmock/gmock.h>

#include <CLI/CLI.hpp>
#include <array>
#include <cstdio>
#include <fstream>
#include <memory>

#include "command_tree.hpp"
#include "completions.hpp"
#include "roff.hpp"
#include "support/temp_folder.hpp"

namespace {

using namespace qualify::cli::manual;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

/// A program with everything that the generators treat apart.
class Manual : public testing::Test {
 protected:
  Manual() {
    app_.add_option("--state", state_, "State folder")->type_name("DIR");
    app_.require_subcommand(1);
    CLI::App* bundle = app_.add_subcommand("bundle", "Freeze what is to be qualified");
    CLI::App* seal = bundle->add_subcommand("seal", "Seal it (it's final)");
    seal->add_option("spec", spec_, "The spec")->type_name("FILE")->required();
    seal->add_flag("--allow-dirty,-d", dirty_, "Seal a tree with changes");
    bundle->add_subcommand("show", "Show one")->add_flag("--json", json_, "One JSON record");
    CLI::App* status = app_.add_subcommand("status", "Say how gates stand");
    status->add_option("--kind", kind_, "Only these")->check(CLI::IsMember({"open", "passed"}));
    app_.add_subcommand("job", "Internal")->group("");
    std::ofstream(texts_ / "bundle.md")
        << "Text about `bundles`.\n\n```\n.qualify/ here\n```\n\n- one\n  item\n";
    std::ofstream(texts_ / "qualify.md") << "What it is.\n\nMore.\n";
    program_ = read_commands(app_, texts_.path());
  }

  /// Standard output and error of a shell command.
  static std::string output_of(const std::string& command) {
    const std::unique_ptr<FILE, int (*)(FILE*)> pipe(
        ::popen(("(" + command + ") 2>&1").c_str(), "r"), ::pclose);
    std::string text;
    std::array<char, 4096> buffer{};
    while (const auto n = std::fread(buffer.data(), 1, buffer.size(), pipe.get())) {
      text.append(buffer.data(), n);
    }
    return text;
  }
  std::string write(const char* name, const std::string& content) {
    std::ofstream(texts_ / name) << content;
    return (texts_ / name).string();
  }
  /// What bash offers after these words, the last one unfinished.
  std::string bash_offers(const std::string& words, int current) {
    const std::string file = write("c.bash", bash_completion(program_));
    return output_of("bash -c '. " + file + "; COMP_WORDS=(" + words + "); COMP_CWORD=" +
                     std::to_string(current) + "; _qualify; echo ${COMPREPLY[*]}'");
  }

  qualify::test::TempFolder texts_;
  CLI::App app_{"Qualifies things", "qualify"};
  std::string state_, spec_, kind_;
  bool dirty_ = false, json_ = false;
  Command program_;
};

TEST_F(Manual, TheTreeIsTheProgramsOwn) {
  ASSERT_EQ(program_.commands.size(), 2U) << "hidden commands stay hidden";
  const Command& seal = program_.commands[0].commands.at(0);
  EXPECT_EQ(seal.arguments.at(0).value_name, "spec");
  EXPECT_TRUE(seal.arguments.at(0).required);
  EXPECT_EQ(seal.arguments.at(0).values, Values::path);
  EXPECT_THAT(seal.options.at(1).names, ElementsAre("--allow-dirty", "-d"));
  EXPECT_THAT(program_.commands[1].options.at(1).choices, ElementsAre("open", "passed"));
  EXPECT_THAT(program_.commands[0].text, HasSubstr("Text about"));
}

TEST_F(Manual, ThePageNamesEveryCommandAndOption) {
  const std::string page = manual_page(program_, "1.2.3");
  for (const char* text : {"qualify bundle seal", "\\-\\-allow\\-dirty", "\\fIDIR\\fP", "1.2.3",
                           "One of \\fBopen\\fP, \\fBpassed\\fP", "it\\(aqs final"}) {
    EXPECT_THAT(page, HasSubstr(text));
  }
  EXPECT_THAT(page, Not(HasSubstr("Internal")));
  EXPECT_EQ(page, manual_page(program_, "1.2.3"));
}

TEST_F(Manual, ThePageIsWellFormed) {
  const std::string page = write("qualify.1", manual_page(program_, "1.2.3"));
  EXPECT_EQ(output_of("mandoc -Tlint -Wwarning " + page + " | grep -v 'missing date'"), "");
  const std::string shown = output_of("mandoc -Tascii -Owidth=78 " + page + " | col -bx");
  EXPECT_THAT(shown, HasSubstr("\n           .qualify/ here\n"));
  EXPECT_THAT(shown, HasSubstr("one item"));
}

TEST_F(Manual, TextThatLooksLikeARequestIsText) {
  EXPECT_EQ(roff_of_markdown("`.TH` and a \\ and it's -1"),
            ".PP\n\\fB.TH\\fP and a \\e and it\\(aqs \\-1\n");
  EXPECT_EQ(roff_of_markdown(".hidden"), ".PP\n\\&.hidden\n");
  EXPECT_EQ(roff_of_markdown("a lone ` stays"), ".PP\na lone \\(ga stays\n");
}

TEST_F(Manual, BashOffersWhatFits) {
  EXPECT_EQ(bash_offers("qualify \"\"", 1), "bundle status\n");
  EXPECT_EQ(bash_offers("qualify b", 1), "bundle\n");
  EXPECT_EQ(bash_offers("qualify bundle s", 2), "seal show\n");
  EXPECT_EQ(bash_offers("qualify bundle seal --al", 3), "--allow-dirty\n");
  EXPECT_EQ(bash_offers("qualify status --kind \"\"", 3), "open passed\n");
  EXPECT_EQ(bash_offers("qualify --state /tmp bundle sh", 4), "show\n");
  EXPECT_EQ(bash_offers("qualify --state /et", 2), "/etc\n");
  EXPECT_EQ(bash_offers("qualify j", 1), "\n") << "hidden commands stay hidden";
}

TEST_F(Manual, FishOffersWhatFits) {
  const std::string file = write("qualify.fish", fish_completion(program_));
  const auto offers = [&](const std::string& line) {
    return output_of("HOME=" + texts_.path().string() + " fish --no-config -c 'source " + file +
                     "; complete -C \"" + line + "\"'");
  };
  EXPECT_EQ(offers("qualify "),
            "bundle\tFreeze what is to be qualified\nstatus\tSay how gates stand\n");
  EXPECT_EQ(offers("qualify bundle se"), "seal\tSeal it (it's final)\n");
  EXPECT_EQ(offers("qualify bundle show --j"), "--json\tOne JSON record\n");
  EXPECT_EQ(offers("qualify status --kind "), "open\tOnly these\npassed\tOnly these\n");
}

TEST_F(Manual, ZshTakesTheFile) {
  const std::string file = write("_qualify", zsh_completion(program_));
  EXPECT_EQ(output_of("zsh -f -n " + file), "");
  EXPECT_EQ(output_of("zsh -f -c 'compdef() { echo $*; }; . " + file +
                      "; whence -w _qualify__bundle_seal'"),
            "_qualify qualify\n_qualify__bundle_seal: function\n");
}

}  // namespace
