// The lattice of a sequence whose label scores a network made. Included after inference.hpp.

template <class Given, class Shape>
Lattice<Shape> dense_lattice(const ChainDenseOf<Given>& data, const ChainRange& range, int64_t n, const Shape& shape) {
    const int64_t length = data.lengths[n], n_labels = shape.n_labels;
    const auto width = shape.span();
    Lattice<Shape> a = make_lattice(static_cast<Real*>(range.scratch), length, shape, false);
    bool finite = true;
    for (int64_t t = 0; t < length; ++t) {
        const Given* from = data.u + n * data.sequence_stride + t * data.step_stride;
        Real* u = a.u + t * width;
        for (int64_t j = 0; j < n_labels; ++j) u[j] = from[j];
        for (int64_t j = n_labels; j < width; ++j) u[j] = 0;
        for (int64_t j = 0; t == 0 && j < n_labels; ++j) u[j] += data.start[j];
        for (int64_t j = 0; t + 1 == length && j < n_labels; ++j) u[j] += data.end[j];
        Real low = 0;
        for (int64_t j = 0; j < n_labels; ++j) low = u[j] < low ? u[j] : low;
        finite &= low > kLowest;
    }
    a.limited = !finite;
    return a;
}
