/** The examples of docs/find-your-way.md, `extending/*.diff`, are applied to a copy, which must compile. */
import { spawnSync } from 'node:child_process'
import { cpSync, globSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join, resolve } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'

const test = suite('extending')

const EXAMPLES = globSync('test/extending/*.diff').toSorted()

test('the examples compile', () => {
  const copy = mkdtempSync(join(tmpdir(), 'flasher-extending-'))
  try {
    for (const name of ['appliance', 'build', 'runtime', 'package.json', 'tsconfig.json']) {
      cpSync(name, join(copy, name), { recursive: true })
    }
    symlinkSync(resolve('node_modules'), join(copy, 'node_modules'))
    // With -C0 what is replaced must be there, and the lines around it may have changed.
    for (const example of EXAMPLES) run('git', ['apply', '-C0', resolve(example)], copy)
    run(resolve('node_modules/.bin/tsc'), [], copy)
  } finally {
    rmSync(copy, { recursive: true })
  }
})

test('the page names each example, and the number of its files', () => {
  const page = readFileSync('docs/find-your-way.md', 'utf8')
  const rows = [...page.matchAll(/\[([\w-]+\.diff)\]\([^)]*\) *\| *(\d+) \|/g)]
  assert.equal(
    rows.map(([, name, files]) => `${name} ${files}`).toSorted(),
    EXAMPLES.map((path) => {
      const files = readFileSync(path, 'utf8').match(/^\+\+\+ /gm)?.length
      return `${basename(path)} ${files}`
    }),
  )
})

function run(program: string, args: readonly string[], cwd: string): void {
  const { status, stdout, stderr } = spawnSync(program, args, { cwd, encoding: 'utf8' })
  assert.is(status, 0, `${args.join(' ')}: ${stdout}${stderr}`)
}

test.run()
