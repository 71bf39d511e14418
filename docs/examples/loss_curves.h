/* For train_mlp.c: writes losses as CSV and as an SVG picture. */
#ifndef TRESTLE_EXAMPLES_LOSS_CURVES_H_
#define TRESTLE_EXAMPLES_LOSS_CURVES_H_

#include <stdio.h>

typedef struct {
  const char* name;
  const double* losses; /* one for each point */
} Curve;

/* One row for each point, one column for each curve. A point is `every` steps behind the one before. */
static void write_csv(FILE* file, const Curve* curves, int count, int points, int every) {
  fprintf(file, "step");
  for (int c = 0; c < count; ++c) fprintf(file, ",%s", curves[c].name);
  for (int p = 0; p < points; ++p) {
    fprintf(file, "\n%d", p * every);
    for (int c = 0; c < count; ++c) fprintf(file, ",%.6f", curves[c].losses[p]);
  }
  fprintf(file, "\n");
}

enum { kLeft = 60, kTop = 30, kWide = 560, kHigh = 320 }; /* the plot's place, in pixels */

static void write_axes(FILE* file, double most, int last_step) {
  for (int tick = 0; tick <= 4; ++tick) {
    const double y = kTop + kHigh * (1 - tick / 4.0), x = kLeft + kWide * tick / 4.0;
    fprintf(file, "<line x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\" stroke=\"#ddd\"/>\n", kLeft, y, kLeft + kWide, y);
    fprintf(file, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%.2f</text>\n", kLeft - 6, y + 4, most * tick / 4);
    fprintf(file, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%d</text>\n", x, kTop + kHigh + 18,
            last_step * tick / 4);
  }
  fprintf(file, "<text x=\"%d\" y=\"%d\">loss</text>\n", kLeft, kTop - 10);
  fprintf(file, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">steps</text>\n", kLeft + kWide, kTop + kHigh + 36);
}

/* Curves lie on each other where policies agree. So later ones have thinner lines. */
static void write_svg(FILE* file, const Curve* curves, int count, int points, int every) {
  static const char* const colors[] = {"#999999", "#d55e00", "#0072b2", "#009e73", "#cc79a7", "#000000"};
  double most = 0;
  for (int c = 0; c < count; ++c) {
    for (int p = 0; p < points; ++p) most = curves[c].losses[p] > most ? curves[c].losses[p] : most;
  }
  fprintf(file, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" font-family=\"sans-serif\" ",
          kLeft + kWide + 30, kTop + kHigh + 50);
  fprintf(file, "font-size=\"12\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n");
  write_axes(file, most, (points - 1) * every);
  for (int c = 0; c < count; ++c) {
    const char* const color = colors[c % (int)(sizeof colors / sizeof colors[0])];
    const double width = 1 + 5.0 * (count - 1 - c) / (count > 1 ? count - 1 : 1);
    fprintf(file, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"%.1f\" points=\"", color, width);
    for (int p = 0; p < points; ++p) {
      fprintf(file, "%s%.1f,%.1f", p == 0 ? "" : " ", kLeft + (double)kWide * p / (points - 1),
              kTop + kHigh * (1 - curves[c].losses[p] / most));
    }
    fprintf(file, "\"/>\n<text x=\"%d\" y=\"%d\" fill=\"%s\" text-anchor=\"end\">%s</text>\n", kLeft + kWide,
            kTop + 14 + 18 * c, color, curves[c].name);
  }
  fprintf(file, "</svg>\n");
}

#endif
