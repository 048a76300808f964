# Reads one sample a line: "one x1 x2 ..." or "pair x1.. | y1..". Prints, in 17 digits, what R says.
out <- function(...) cat(format(c(...), digits = 17), sep = " ", "\n")
options(warn = -1) # "requested confidence level not achievable" on 4 or 5 values
for (line in readLines(file("stdin"))) {
  halves <- strsplit(line, "|", fixed = TRUE)[[1]]
  x <- as.numeric(strsplit(trimws(halves[1]), " ")[[1]])
  y <- as.numeric(strsplit(trimws(halves[2]), " ")[[1]])
  d <- x - y
  t <- t.test(x, y, paired = TRUE)
  upper <- t.test(x, y, paired = TRUE, alternative = "less")$conf.int[2]
  lower <- t.test(x, y, paired = TRUE, alternative = "greater")$conf.int[1]
  w <- outer(d, d, "+") / 2
  flips <- as.matrix(expand.grid(rep(list(c(-1, 1)), length(d))))
  flip <- mean(abs(flips %*% d) >= abs(sum(d)) * (1 - 1e-12))
  s <- wilcox.test(d, exact = TRUE, conf.int = TRUE)
  u <- wilcox.test(x, y, exact = TRUE)
  a <- acf(x, plot = FALSE, lag.max = 2)$acf
  # crossover: the first half of the pairs as AB, the rest as BA
  h <- length(d) %/% 2
  ab <- d[1:h]; ba <- d[(h + 1):length(d)]
  two <- t.test(ab, ba, var.equal = TRUE)
  effect <- (mean(ab) + mean(ba)) / 2
  se <- two$stderr / 2
  out(median(x), mean(x, trim = 0.2), sd(x), median(w[upper.tri(w, diag = TRUE)]),
      median(outer(x, y, "-")), unname(t$statistic), t$p.value, t$conf.int[1], t$conf.int[2],
      lower, upper, flip, unname(s$statistic), s$p.value, s$conf.int[1], s$conf.int[2], u$p.value,
      a[2], a[3], effect, se)
}
