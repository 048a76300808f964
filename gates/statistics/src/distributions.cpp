#include "qualify/statistics/distributions.hpp"

#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <numbers>

namespace qualify::statistics {

double student_cdf(double t, double df) {
  return boost::math::cdf(boost::math::students_t(df), t);
}

double student_quantile(double p, double df) {
  return boost::math::quantile(boost::math::students_t(df), p);
}

double normal_cdf(double z) {
  return 0.5 * std::erfc(-z / std::numbers::sqrt2);
}

}  // namespace qualify::statistics
