#!/usr/bin/env bash
# house_test.sh SOURCE_DIR: shows that scripts/draw-house draws the arrows that the build has, and refuses a page with
# others.
set -euo pipefail
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
mkdir -p "$tree/scripts" "$tree/cmake" "$tree/docs" "$tree"/longhaul/{base,io,train/saving,train/hooks,runtime}
cp "$1/scripts/draw-house" "$tree/scripts"
cat >"$tree/cmake/LonghaulLayer.cmake" <<'TABLE'
set(LONGHAUL_ARROWS_base "")
set(LONGHAUL_ARROWS_io base)
set(LONGHAUL_ARROWS_train/saving base io)
set(LONGHAUL_ARROWS_train/hooks base
    train/saving)
set(LONGHAUL_ARROWS_runtime base train)
TABLE
for place in base io train train/saving train/hooks runtime; do
  printf '# What %s\n# has.\nlonghaul_layer(it)\n# More.\n' "$place" >"$tree/longhaul/$place/CMakeLists.txt"
done
long='in a sentence that is too long for a line of a hundred and twenty columns, which the page continues below'
sed -i "s/^# has.$/# has, $long./" "$tree/longhaul/io/CMakeLists.txt"
page=$tree/docs/architecture.md
printf '%s\n' Before. '' '<!-- house -->' old '<!-- end of house -->' '' Between. '' '<!-- picture -->' old \
  '<!-- end of picture -->' '' After. >"$page"

fails() {
  echo "FAILED: $*"
  exit 1
}
accepts() { bash "$tree/scripts/draw-house" --check || fails "$1"; }
rejects() {
  local said
  if said=$(bash "$tree/scripts/draw-house" --check 2>&1); then fails "$1 is accepted"; fi
  [[ $said == *"$2"* ]] || fails "$1: said '$said'"
}

rejects "an old page" "run scripts/draw-house"
bash "$tree/scripts/draw-house"
accepts "a page that was just written"
diff - "$page" <<'PAGE' || fails "another page"
Before.

<!-- house -->

Each folder, its contents, and what it uses (and what these use):

- `longhaul/base`: What base has. Uses nothing.
- `longhaul/io`: What io has, in a sentence that is too long for a line of a hundred and twenty columns, which the page
  continues below. Uses base.
- `longhaul/train`: What train has. Uses its rooms.
- `longhaul/train/saving`: What train/saving has. Uses io.
- `longhaul/train/hooks`: What train/hooks has. Uses train/saving.
- `longhaul/runtime`: What runtime has. Uses train.

<!-- end of house -->

Between.

<!-- picture -->

```mermaid
flowchart TD
  longhaul_base[base]
  longhaul_io[io]
  subgraph longhaul_train[train]
    longhaul_train_saving[saving]
    longhaul_train_hooks[hooks]
  end
  longhaul_runtime[runtime]
  longhaul_io --> longhaul_base
  longhaul_train_saving --> longhaul_io
  longhaul_train_hooks --> longhaul_train_saving
  longhaul_runtime --> longhaul_train
```

<!-- end of picture -->

After.
PAGE

sed -i 's/longhaul_io --> longhaul_base/longhaul_base --> longhaul_io/' "$page"
rejects "an arrow that the build has not" "run scripts/draw-house"
bash "$tree/scripts/draw-house"
sed -i 's/_runtime base train/_runtime io/' "$tree/cmake/LonghaulLayer.cmake"
rejects "an arrow that changed" "run scripts/draw-house"
bash "$tree/scripts/draw-house"
echo 'longhaul_layer(io)' >"$tree/longhaul/io/CMakeLists.txt"
rejects "a folder that says nothing" "longhaul/io/CMakeLists.txt does not begin with a comment"
printf '# What io has. And\n# what it lacks.\n' >"$tree/longhaul/io/CMakeLists.txt"
rejects "a folder that says much" "longhaul/io/CMakeLists.txt begins with more than one sentence"
printf '# What base\n# has.\n' >"$tree/longhaul/io/CMakeLists.txt"
sed -i '/<!-- end of picture -->/d' "$page"
rejects "a page without the picture's end" "lacks the marks"
echo "the house is drawn as it should be"
