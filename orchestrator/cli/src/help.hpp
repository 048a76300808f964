#pragma once

#include <memory>

namespace CLI {
class FormatterBase;
}

namespace qualify::cli {

/// How --help is laid out: descriptions wrapped, no line longer than 80 columns, and a type only
/// where a name does not say it already.
[[nodiscard]] std::shared_ptr<CLI::FormatterBase> help_formatter();

}  // namespace qualify::cli
