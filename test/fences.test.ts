/** What the documentation shows in fenced blocks is tried by a test, or says why not; each command and setting exists. */
import { spawnSync } from 'node:child_process'
import { globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { checkFences } from './support/documents/checked-fences.ts'
import { listFences } from './support/documents/fences.ts'

/** Made by scripts, and compared with what they make. */
const MADE: ReadonlySet<string> = new Set(['docs/dhcp.md', 'docs/map.md', 'docs/settings.md'])
const pages = globSync(['README.md', 'docs/**/*.md'])
  .toSorted()
  .filter((page) => !MADE.has(page))
  .map((page) => ({ page, text: readFileSync(page, 'utf8') }))

const found = (language: string, text: string, mark = '<!-- by hand: an example -->') =>
  checkFences('fences.md', `${mark}\n\`\`\`${language}\n${text}\n\`\`\`\n`).length

const test = suite('fenced blocks')

test('each is tried by a test or by hand, and names commands, routes, variables and settings that exist', () => {
  assert.equal(
    pages.flatMap(({ page, text }) => checkFences(page, text)),
    [],
  )
})

test('a block without a mark, an unknown option, route, variable or setting, and wrong TOML and JSON are found', () => {
  assert.is(found('sh', 'ls', ''), 1)
  assert.is(found('sh', 'ls'), 0)
  assert.is(found('sh', 'ls', '<!-- run: test/none.test.ts -->'), 1)
  assert.is(found('sh', 'ls', '<!-- run: test/fences.test.ts -->'), 0)
  assert.is(found('sh', 'sudo flasher flash --imag x'), 1)
  assert.is(found('sh', 'runuser -u flasher -- env A=b \\\n  flasher-web restor'), 1)
  assert.is(found('sh', 'curl http://127.0.0.1:8080/nothing-here'), 1)
  assert.is(found('sh', 'FLASHER_PATH_STATE_DIR=/tmp flasher-web'), 1)
  assert.is(found('toml', '[pxe]\nmax_flash = 8'), 1)
  assert.is(found('toml', '[pxe]\nmax_flashes = "x"'), 1)
  assert.is(found('toml', '[pxe]\nmax_flashes = 8'), 0)
  assert.is(found('json', '{"a": }'), 1)
})

test('each script is one for bash, and ShellCheck finds no error in it where it is installed', () => {
  const folder = mkdtempSync(join(tmpdir(), 'flasher-fences-'))
  try {
    const files = pages.flatMap(({ page, text }) =>
      listFences(text)
        .filter(({ language }) => language === 'sh')
        .map(({ line, text: script }) => {
          const path = join(folder, `${basename(page)}:${line}`)
          writeFileSync(path, script)
          return path
        }),
    )
    const each = 'for f in "$@"; do bash -n "$f" || exit 1; done'
    const bash = spawnSync('bash', ['-c', each, 'bash', ...files], { encoding: 'utf8' })
    assert.is(bash.stderr, '')
    const checked = spawnSync('shellcheck', ['-s', 'bash', '-S', 'error', ...files], {
      encoding: 'utf8',
    })
    if (checked.error === undefined) assert.is(checked.stdout, '')
    assert.ok(files.length > 40)
  } finally {
    rmSync(folder, { recursive: true })
  }
})

test.run()
