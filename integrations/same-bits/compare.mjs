// The cases of this package in WebAssembly, line by line beside those of this machine:
// node compare.mjs FOLDER-WITH-scenes MODULE.wasm LINES-OF-THIS-MACHINE
import { readFileSync, readdirSync } from "node:fs";

const [root, module, lines] = process.argv.slice(2);
const { instance } = await WebAssembly.instantiate(readFileSync(module), {});
const { memory, room, put, cases, run, buffer } = instance.exports;
const bytes = (at, length) => new Uint8Array(memory.buffer, at, length);

for (const folder of ["scenes", "scenes/parts"]) {
    for (const file of readdirSync(`${root}/${folder}`).filter((f) => f.endsWith(".ron"))) {
        const name = Buffer.from(`${folder}/${file}`);
        const all = Buffer.concat([name, readFileSync(`${root}/${folder}/${file}`)]);
        const at = room(all.length);
        bytes(at, all.length).set(all);
        put(name.length);
    }
}

const native = readFileSync(lines, "utf8").trimEnd().split("\n");
const count = cases();
if (count !== native.length) throw new Error(`${count} cases here, ${native.length} lines there`);
let different = 0;
for (let i = 0; i < count; i++) {
    const length = run(i);
    const line = Buffer.from(bytes(buffer(), length)).toString();
    const same = line === native[i] && / [0-9a-f]{16}$/.test(line);
    different += !same;
    console.log(same ? `same  ${line.split(":")[0]}` : `OTHER ${line}\n  not ${native[i]}`);
}
console.log(`${count - different} of ${count} runs have the same bits`);
process.exit(different ? 1 : 0);
