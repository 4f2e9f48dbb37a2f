/** Runs a program with the tools tree as its `/usr`: `box.ts MKOSI TOOLS PROGRAM ARGS…`. */
import { runInTools } from '#build/mkosi/mkosi.ts'

const [mkosi = '', tools = '', program = '', ...args] = process.argv.slice(2)
// The tools tree hides a Node in the host's `/usr`; ours lies in the checkout.
const file = program === 'node' ? process.execPath : program
process.exitCode = await runInTools(mkosi, tools, [file, ...args])
