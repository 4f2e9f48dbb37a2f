/**
 * Runs the test files that it is given, in one process, and ends with what they cost: the processor's
 * seconds of this process and of all that it started and waited for.
 */
import fs from 'node:fs'
import path from 'node:path'
import { run } from 'uvu/run'

const [folder = 'test', ...names] = process.argv.slice(2)

process.on('exit', () => process.stdout.write(`\nProcessor: ${readProcessorSeconds()} s\n`))
await run(names.map((name) => ({ name, file: path.resolve(folder, name) })))

function readProcessorSeconds(): number {
  const stat = fs.readFileSync('/proc/self/stat', 'utf8')
  // The name before it, in brackets, may hold anything. utime, stime, cutime, cstime: hundredths of a second.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks), 0) / 100
}
