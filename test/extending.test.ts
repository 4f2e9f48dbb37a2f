/** The examples of docs/extending.md are applied to a copy, which must compile. */
import { spawnSync } from 'node:child_process'
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'

const test = suite('extending')

const EXAMPLES = [
  ...readFileSync('docs/extending.md', 'utf8').matchAll(/^```diff\n(.*?)^```/gms),
].map(([, diff = '']) => diff)

test('the examples compile', () => {
  assert.is(EXAMPLES.length, 3)
  const copy = mkdtempSync(join(tmpdir(), 'flasher-extending-'))
  try {
    for (const name of ['appliance', 'build', 'runtime', 'package.json', 'tsconfig.json']) {
      cpSync(name, join(copy, name), { recursive: true })
    }
    symlinkSync(join(process.cwd(), 'node_modules'), join(copy, 'node_modules'))
    for (const input of EXAMPLES) {
      assert.is(run('git', ['apply', '-'], { cwd: copy, input }), '')
    }
    assert.is(run(join(process.cwd(), 'node_modules/.bin/tsc'), [], { cwd: copy }), '')
  } finally {
    rmSync(copy, { recursive: true })
  }
})

/** All that it prints; programs that succeed here are silent. */
function run(
  program: string,
  args: readonly string[],
  more: { cwd: string; input?: string },
): string {
  const { stdout, stderr } = spawnSync(program, args, { ...more, encoding: 'utf8' })
  return stdout + stderr
}

test.run()
