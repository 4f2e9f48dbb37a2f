/** Runs a program with the tools tree as its `/usr`: `box.ts MKOSI TOOLS PROGRAM ARGS…`. */
import { runInTools } from '../mkosi/mkosi.ts'

const [mkosi = '', tools = '', program = '', ...args] = process.argv.slice(2)
// The Node of the host's `/usr` is not there; ours lies in the checkout.
const file = program === 'node' ? process.execPath : program
process.exitCode = await runInTools(mkosi, tools, [file, ...args])
