"use strict";
const at = (id) => document.getElementById(id);
const element = (name, text = "", properties = {}) =>
  Object.assign(document.createElement(name), { textContent: text }, properties);
const count = (number) => Number(number).toLocaleString("en");
const several = (number, thing) => `${count(number)} ${thing}${number === 1 ? "" : "s"}`;
const RULES = JSON.parse(at("rules-of-fields").textContent);
const bytesOf = (text, step) => Uint8Array.from({ length: text.length / step }, (_, i) => parseInt(text.substr(i * step, 2), 16));
const WASM = Uint8Array.from(atob(at("wasm").textContent), (one) => one.charCodeAt(0));
const WORKER = URL.createObjectURL(new Blob([at("worker").textContent], { type: "text/javascript" }));
const COUNT = 400; // of fields shown at once
const MOST_PROBLEMS = 1000;

// Escapes for characters that are invisible or change the direction of a line.
const shown = (text) => text.replace(/[\p{C}\p{Zl}\p{Zp}]/gu, (one) => `\\u{${one.codePointAt(0).toString(16)}}`);

function time(millis) {
  if (millis === "-1") return "none";
  const date = new Date(Number(millis));
  return Number.isNaN(date.valueOf()) ? `${millis} ms` : date.toISOString();
}

let worker, open; // the open file: its size, checkpoints of sheets, sums and damage; and what is shown of it

function inspect(file) {
  worker?.terminate();
  open = { file, size: file.size, sheets: [], batches: 0, damages: 0, sums: { records: 0, good: 0, quarantined: 0, tail: 0 },
    damage: [], sheet: -1, listed: -1, shown: -1, state: "reading" };
  at("main").hidden = false;
  at("detail").hidden = at("damage").hidden = true;
  at("name").textContent = shown(file.name);
  for (const id of ["problems", "batches", "bytes"]) at(id).replaceChildren();
  at("map").replaceChildren(element("div"));
  worker = new Worker(WORKER);
  worker.onmessage = ({ data }) => handlers[data.kind](data);
  worker.onerror = (event) => stopped({ position: open.read ?? 0, error: event.message });
  worker.postMessage({ kind: "open", file, wasm: WASM });
  summarize();
}

function stopped({ position, error }) {
  open.state = "stopped";
  open.error = `Reading stopped at byte ${count(position)}: ${shown(error)}.`;
  summarize();
}

const handlers = {
  stopped,
  read({ position }) {
    if (open.state !== "reading") return;
    open.read = Math.max(open.read ?? 0, position);
    at("map").firstChild.style.width = `${(100 * open.read) / open.size}%`;
    summarize();
  },
  scanned({ start, damage, damages, batches, sums }) {
    open.sheets.push(start);
    open.batches += batches;
    for (const name in open.sums) open.sums[name] += sums[name];
    for (const row of damage.slice(0, MOST_PROBLEMS - open.damage.length)) mark(row, open.sheets.length - 1);
    open.damages += damages;
    if (open.sheet < 0) showSheet(0);
    summarize();
  },
  finished() {
    open.state = "finished";
    at("map").firstChild.style.width = "100%";
    summarize();
  },
  sheet({ number, sheet }) {
    if (number === open.sheet) listBatches(sheet);
  },
  fields({ position, first, answer }) {
    if (open.piece?.position === position && open.first === first) showFields(answer);
  },
};

function summarize() {
  const { batches, damages, sums, size, state } = open;
  const whole = { reading: `${Math.floor((100 * (open.read ?? 0)) / size) || 0} % read`, finished: "read to its end", stopped: open.error }[state];
  const nothing = state === "finished" && batches === 0;
  at("status").textContent = nothing && size === 0 ? "The file is empty."
    : nothing ? `No batch can be read in these ${count(size)} bytes: the file is no segment, or all of it is damaged.`
    : `${count(batches)} ${batches === 1 ? "batch" : "batches"} with ${several(sums.records, "record")}, ${several(damages, "damaged place")}; ${whole}`;
  at("status").dataset.state = state;
  at("status").classList.toggle("bad", nothing || state === "stopped");
  at("account").textContent = `${count(sums.good)} bytes are good, ${count(sums.quarantined)} damaged, ${count(sums.tail)} the tail` +
    (state === "finished" ? `; of ${count(size)}.` : ".");
  at("damage").hidden = damages === 0;
  at("more-problems").textContent = damages > open.damage.length ? `${count(damages - open.damage.length)} more in the list of batches.` : "";
  const last = open.sheets.length - 1;
  at("sheets").hidden = last < 1;
  at("sheet").textContent = `part ${count(open.sheet + 1)} of ${count(last + 1)}`;
  at("previous-sheet").disabled = open.sheet <= 0;
  at("next-sheet").disabled = open.sheet >= last;
}

// A damaged place, in the list and on the map.
function mark(row, sheet) {
  open.damage.push(row);
  const button = element("button", `byte ${count(row.position)}`, { type: "button", onclick() { showSheet(sheet); choose(row); } });
  const item = element("li");
  item.append(button, ` ${count(row.size)} bytes: ${shown(row.problem)}`);
  at("problems").append(item);
  const place = element("i");
  place.style.left = `min(${(100 * row.position) / open.size}%, 100% - 3px)`;
  place.style.width = `${(100 * row.size) / open.size}%`;
  at("map").append(place);
}

function showSheet(number) {
  if (open.sheet === number) return;
  open.sheet = number;
  worker.postMessage({ kind: "sheet", number, start: open.sheets[number] });
  summarize();
}

function listBatches({ rows, error }) {
  if (error) return stopped({ position: open.sheets[open.sheet].position, error });
  open.listed = open.sheet;
  at("batches").replaceChildren(...rows.map((row) => {
    const line = element("tr", "", { tabIndex: 0, onclick: () => choose(row), onkeydown: (key) => key.key === "Enter" && choose(row) });
    line.dataset.position = row.position;
    line.dataset.kind = row.kind;
    line.classList.toggle("bad", row.kind === "quarantined");
    line.classList.toggle("chosen", row.position === open.piece?.position);
    const { producer, magic } = row;
    const flags = [row.is_transactional && "transactional", row.is_control && "control"].filter(Boolean).join(", ");
    const known = magic === undefined ? [] : [
      row.base_offset === row.last_offset ? row.base_offset : `${row.base_offset} to ${row.last_offset}`,
      count(row.records), row.codec, String(magic), time(row.max_timestamp),
      producer ? `${producer.id}, epoch ${producer.epoch}, from ${producer.sequence}${flags && `, ${flags}`}` : flags || "none",
      `${row.crc} correct`,
    ];
    line.append(element("td", count(row.position)), element("td", count(row.size)));
    if (row.problem && known.length) known[6] += `, but ${shown(row.problem)}`;
    if (known.length) line.append(...known.map((text) => element("td", text)));
    else line.append(element("td", shown(row.problem), { colSpan: 7, className: "wide" }));
    return line;
  }));
}

function choose(row) {
  open.piece = row;
  for (const line of at("batches").children) line.classList.toggle("chosen", line.dataset.position === String(row.position));
  askFields(0);
}

function askFields(first) {
  open.first = first;
  const { position, size } = open.piece;
  worker.postMessage({ kind: "fields", position, size, first, count: COUNT });
}

function showFields(answer) {
  const { piece, first } = open;
  const fields = answer.fields ?? [];
  at("detail").hidden = false;
  at("piece").textContent = `${piece.kind === "good" ? "Batch" : piece.kind === "tail" ? "Tail" : "Damage"} at byte ${count(piece.position)}, ${count(piece.size)} bytes`;
  at("windows").hidden = first === 0 && !answer.more;
  at("window").textContent = `fields ${count(first + 1)} to ${count(first + fields.length)}`;
  at("previous-fields").disabled = first === 0;
  at("next-fields").disabled = !answer.more;
  const { repair } = answer;
  at("repair").hidden = !repair;
  at("repair").textContent = repair ? `The CRC proves what is wrong: ${repair.change} (byte ${count(piece.position + repair.at)} of the file).` : "";
  at("error").hidden = !answer.error;
  const why = answer.fields ? "Here the bytes stop making sense" : "The bytes cannot be shown";
  at("error").textContent = answer.error ? `${why}: ${shown(answer.error)}.` : "";
  open.fields = fields;
  open.repair = repair;
  draw(answer.payload);
  open.shown = piece.position;
  at("place").textContent = "Move the pointer over a byte.";
  at("field").textContent = at("meaning").textContent = "";
  at("rules").replaceChildren();
}

// The bytes of the fields in rows of 16; of a long field its first ones.
function draw(payload) {
  const view = at("bytes");
  view.replaceChildren();
  let row, line, section = false;
  open.fields.forEach((field, index) => {
    if (field.is_decompressed && !section) {
      section = true;
      line = undefined;
      view.append(element("p", `Decompressed: ${payload}. Positions count from their start.`));
    }
    const bytes = bytesOf(field.bytes, 2);
    bytes.forEach((byte, i) => {
      const position = field.start + i;
      if (line !== Math.floor(position / 16)) {
        line = Math.floor(position / 16);
        row = element("div", "", { className: "row" });
        row.append(element("span", `${String(16 * line).padStart(9)}  `), space(position % 16));
        view.append(row);
      }
      const cell = element("i", byte.toString(16).padStart(2, "0"));
      cell.dataset.field = index;
      cell.dataset.position = position;
      const isRepaired = !field.is_decompressed && open.repair?.at === position;
      cell.className = [index % 2 ? "odd" : "", field.is_wrong || isRepaired || field.key.endsWith(".rest") ? "bad" : ""].join(" ").trim();
      row.append(cell);
    });
    if (field.size > bytes.length) {
      view.append(element("p", `${count(field.size - bytes.length)} more bytes of ${field.label}`));
      line = undefined;
    }
  });
}

// The place of cells of a row that belong to fields before the first one.
function space(cells) {
  const empty = element("b");
  empty.style.paddingLeft = `calc(${cells} * (2ch + .5em))`;
  return empty;
}

function explain(cell) {
  const field = open.fields[cell.dataset.field];
  const position = Number(cell.dataset.position);
  for (const other of at("bytes").querySelectorAll(".same, .now")) other.classList.remove("same", "now");
  for (const other of at("bytes").querySelectorAll(`[data-field="${cell.dataset.field}"]`)) other.classList.add("same");
  cell.classList.add("now");
  const end = field.start + field.size - 1;
  at("place").textContent = `Byte ${count(position)} of the ${field.is_decompressed ? "decompressed data" : `batch, ${count(open.piece.position + position)} of the file`}: ` +
    `0x${cell.textContent}, ${parseInt(cell.textContent, 16)}. The field has ${field.size === 1 ? "this byte" : `bytes ${count(field.start)} to ${count(end)}`}.`;
  at("field").textContent = field.label;
  at("meaning").textContent = shown(field.meaning);
  at("meaning").classList.toggle("bad", field.is_wrong);
  const rules = RULES[field.key] ?? [];
  at("rules").replaceChildren(...rules.map(({ rule, by }) => element("li", by ? `${rule} (${by})` : rule)));
}

at("bytes").addEventListener("mouseover", ({ target }) => target.dataset.field && explain(target));
at("bytes").addEventListener("click", ({ target }) => target.dataset.field && explain(target));
at("bytes").addEventListener("keydown", (key) => {
  const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: 16, ArrowUp: -16 }[key.key];
  if (!step) return;
  key.preventDefault();
  const cells = [...at("bytes").querySelectorAll("i")];
  const next = cells[Math.min(Math.max(cells.findIndex((cell) => cell.classList.contains("now")) + step, 0), cells.length - 1)];
  next?.scrollIntoView({ block: "nearest" });
  if (next) explain(next);
});
at("previous-sheet").onclick = () => showSheet(open.sheet - 1);
at("next-sheet").onclick = () => showSheet(open.sheet + 1);
at("previous-fields").onclick = () => askFields(Math.max(open.first - COUNT, 0));
at("next-fields").onclick = () => askFields(open.first + COUNT);
at("file").onchange = ({ target }) => {
  const [file] = target.files;
  if (file) inspect(file);
  target.value = ""; // so that the same file can be chosen again
};
at("example").onclick = () => inspect(new File([bytesOf(at("two-records").textContent, 2)], "two records, uncompressed"));
addEventListener("dragover", (event) => { event.preventDefault(); document.body.classList.add("over"); });
addEventListener("dragleave", () => document.body.classList.remove("over"));
addEventListener("drop", (event) => {
  event.preventDefault();
  document.body.classList.remove("over");
  const [file] = event.dataTransfer.files;
  if (file) inspect(file);
});
