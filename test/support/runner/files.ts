/**
 * Runs the test files that it is given, in one process, and ends with what they cost: the processor's
 * seconds of this process and of all that it started and waited for.
 */
import fs from 'node:fs'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { inspect } from 'node:util'

declare global {
  // What uvu keeps between a file and its turn.
  var UVU_DEFER: boolean | undefined
  var UVU_INDEX: number | undefined
  var UVU_QUEUE: unknown[][]
}

const [folder = 'test', ...names] = process.argv.slice(2)

process.on('exit', () => process.stdout.write(`\nProcessor: ${readProcessorSeconds()} s\n`))
globalThis.UVU_DEFER = true
const uvu = await import('uvu')
for (const [index, name] of names.entries()) {
  globalThis.UVU_INDEX = index
  globalThis.UVU_QUEUE.push([name])
  await load(name)
}
await uvu.exec()

/** Of several files the one that cannot be loaded is named. */
async function load(name: string) {
  try {
    await import(pathToFileURL(path.resolve(folder, name)).href)
  } catch (thrown) {
    process.stdout.write(`${name}\n   FAIL: it cannot be loaded: ${inspect(thrown)}\n`)
    process.exit(1)
  }
}

function readProcessorSeconds(): number {
  const stat = fs.readFileSync('/proc/self/stat', 'utf8')
  // The name before it, in brackets, may hold anything. utime, stime, cutime, cstime: hundredths of a second.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks), 0) / 100
}
