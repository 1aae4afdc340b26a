#pragma once

// Datasets, and loaders that prepare batches ahead. Each batch depends only on its position in a seeded order.

#include "longhaul/data/batch_order.h"
#include "longhaul/data/data_loader.h"
#include "longhaul/data/dataset.h"
#include "longhaul/data/example_order.h"
