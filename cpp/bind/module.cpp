#include "common.hpp"

NB_MODULE(_core, m) {
    m.doc() = "The compiled core of crfkit.";
    nb::set_leak_warnings(false);  // objects that caches and globals of Python keep live until the process ends
    crfkit::bind_build(m);
    crfkit::bind_strings(m);
    crfkit::bind_buckets(m);
    crfkit::bind_text_rules(m);
    crfkit::bind_encoder(m);
    crfkit::bind_sequences(m);
    crfkit::bind_chain(m);
    crfkit::bind_chain_dense(m);
    crfkit::bind_decoder(m);
    crfkit::bind_tagger(m);
    crfkit::bind_crfsuite_model(m);
    crfkit::bind_online(m);
    crfkit::bind_vectors(m);
    crfkit::bind_group_linf(m);
    crfkit::bind_orthants(m);
    crfkit::bind_graph(m);
    crfkit::bind_graph_messages(m);
    crfkit::bind_graph_exact(m);
    crfkit::bind_graph_gibbs(m);
    crfkit::bind_graph_pseudo(m);
    crfkit::bind_graph_icm(m);
    crfkit::bind_inverted(m);
    crfkit::bind_pseudo_table(m);
}
