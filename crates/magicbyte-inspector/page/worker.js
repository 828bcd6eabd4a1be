"use strict";
// Reads the file in slices with the core, so that the page stays alive whatever the file is.

let module, core, file, panic;
const reader = new FileReaderSync();
const texts = new TextDecoder();

const text = (pointer, size) => texts.decode(new Uint8Array(core.memory.buffer, pointer >>> 0, size));

const page = {
  read(position, buffer, length) {
    try {
      const bytes = new Uint8Array(reader.readAsArrayBuffer(file.slice(position, position + length)));
      new Uint8Array(core.memory.buffer, buffer >>> 0, length).set(bytes);
      postMessage({ kind: "read", position: position + bytes.length });
      return bytes.length;
    } catch {
      return -1;
    }
  },
  panicked(pointer, size) {
    panic = text(pointer, size);
  },
};

function start() {
  core = new WebAssembly.Instance(module, { page }).exports;
  return answer("open", file.size);
}

// A call of the core. Its memory is of no use after a trap, so another instance takes its place.
function call(name, ...given) {
  panic = undefined;
  try {
    return answer(name, ...given);
  } catch (trap) {
    start();
    return { error: panic ?? `the core stopped: ${trap.message}` };
  }
}

function answer(name, ...given) {
  const pointer = core[name](...given);
  return JSON.parse(text(pointer, core.answer_size()));
}

const sheetAt = ({ position, expected }) => call("sheet", position, BigInt(expected));

// Lets requests of the page come between two sheets.
const channel = new MessageChannel();
const pause = () => new Promise((go) => { channel.port1.onmessage = go; channel.port2.postMessage(0); });

async function scan(first) {
  for (let next = first; next;) {
    const sheet = sheetAt(next);
    if (sheet.error) {
      postMessage({ kind: "stopped", position: next.position, error: sheet.error });
      return;
    }
    const damage = sheet.rows.filter((row) => row.kind === "quarantined");
    postMessage({ kind: "scanned", start: next, damage: damage.slice(0, 200), damages: damage.length,
      batches: sheet.rows.filter((row) => row.kind === "good").length, sums: { ...sheet, rows: undefined } });
    next = sheet.next;
    await pause();
  }
  postMessage({ kind: "finished" });
}

onmessage = ({ data }) => {
  switch (data.kind) {
    case "open": {
      file = data.file;
      module = new WebAssembly.Module(data.wasm);
      const first = start();
      if (first.error) postMessage({ kind: "stopped", position: 0, error: first.error });
      else scan(first);
      break;
    }
    case "sheet":
      postMessage({ kind: "sheet", number: data.number, sheet: sheetAt(data.start) });
      break;
    case "fields":
      postMessage({ ...data, answer: call("fields", data.position, data.size, data.first, data.count) });
  }
};
