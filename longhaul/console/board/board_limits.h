#pragma once

#include <cstddef>
#include <cstdint>

namespace longhaul::console {

// What a board keeps at most, so that its memory is bounded whatever is in the files. What is left out is told.
inline constexpr size_t kMostRuns = 200;
inline constexpr size_t kMostNotes = 50;                          // of what cannot be looked at
inline constexpr size_t kMostTags = 5000;                         // of all runs together
inline constexpr size_t kMostTagBytes = 500;                      // of a tag's name
inline constexpr uint64_t kMostKeptBytes = 512000000;             // of all curves and places together
inline constexpr size_t kFewestPoints = 16;                       // that each has even then
inline constexpr size_t kMostPlaces = 256;                        // of a tag's images, histograms or texts
inline constexpr size_t kMostStarts = 1000;                       // of a run
inline constexpr size_t kMostEventFiles = 5000;                   // of a run
inline constexpr size_t kMostProblems = 5;                        // of the event files of a run, and of its training
inline constexpr uint64_t kMostRecordBytes = uint64_t{64} << 20;  // of an event: more than is ever shown of one

// What a reply has at most.
inline constexpr size_t kMostListed = 20000;        // curves, series of images and the like, and restarts, in a list
inline constexpr size_t kMostDrawnSamples = 60000;  // of all curves of a reply
inline constexpr size_t kMostDrawnOfCurve = 10000;
inline constexpr size_t kMostHistograms = 60;
inline constexpr size_t kMostBins = 60;
inline constexpr size_t kMostTexts = 30;
inline constexpr size_t kMostTextBytes = 20000;  // of each
inline constexpr uint64_t kMostImageFileBytes = uint64_t{16} << 20;

}  // namespace longhaul::console
