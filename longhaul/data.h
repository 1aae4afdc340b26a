#pragma once

// Datasets, and loaders that prepare batches ahead, each a function of its position in a seeded order.

#include "longhaul/data/batch_order.h"
#include "longhaul/data/data_loader.h"
#include "longhaul/data/dataset.h"
#include "longhaul/data/example_order.h"
