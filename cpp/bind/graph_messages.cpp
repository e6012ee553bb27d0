#include "graph.hpp"

namespace crfkit {

void bind_graph_messages(nb::module_&) {}

}  // namespace crfkit
