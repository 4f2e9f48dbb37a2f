import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { SHELLS } from '#kit/terminal/command/rules/command.ts'
import { COMMAND_LINE } from '#flasher/commands/rules/commands.ts'
import { TUI_LINE as TUI } from '#flasher/panes/rules/tui-commands.ts'
import { createShell } from '#kit/host/shell.ts'
import { COMMAND_LINE as CACHE } from '#cache/rules/commands.ts'
import { COMMAND_LINE as WEB } from '#server/current/commands/rules/commands.ts'
import { WIZARD } from '#flasher/wizard/options.ts'
import { renderCompletion } from '#kit/terminal/command/completion.ts'

const test = suite('completion')
const shell = createShell({ env: process.env })

/** A folder with images and other things, and the scripts. */
async function createFixture() {
  const folder = await mkdtemp(join(tmpdir(), 'flasher-completion-'))
  await mkdir(join(folder, 'more'))
  for (const name of ['disk.img.zst', 'OLD.IMG', 'notes.txt', 'a b.qcow2']) {
    await writeFile(join(folder, name), '')
  }
  for (const name of SHELLS) {
    for (const line of [{ ...COMMAND_LINE, main: WIZARD }, WEB, CACHE, TUI]) {
      await writeFile(join(folder, scriptOf(line.program, name)), renderCompletion(line, name))
    }
  }
  return { folder, [Symbol.asyncDispose]: () => rm(folder, { recursive: true }) }
}

const scriptOf = (program: string, name: string) =>
  program === 'flasher' ? `script.${name}` : `script-${program}.${name}`

/** What a real bash offers for a command line; the last word is the one being typed. */
async function offered(cwd: string, words: readonly string[]): Promise<readonly string[]> {
  const ask = [
    `source ${scriptOf(words[0] ?? '', 'bash')}`,
    'COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))',
    '"_$1"',
    'printf "%s\\n" "${COMPREPLY[@]}"',
  ].join('\n')
  const said = await shell.require(['bash', '-uc', ask, 'bash', ...words], { cwd })
  return said.split('\n').filter(Boolean).toSorted()
}

test('bash: commands, flags, choices, files', async () => {
  await using fixture = await createFixture()
  const rows: readonly (readonly [string, readonly string[]])[] = [
    ['flasher |li', ['list']],
    ['flasher |list|', ['--help', 'disks', 'images']],
    ['flasher |list|d', ['disks']],
    ['flasher |list|disks|', ['--bytes', '--help', '--json']],
    ['flasher |list|disks|--json|', ['--bytes', '--help']],
    ['flasher |--s', ['--server']],
    ['flasher |--catalog|n', ['notes.txt']],
    ['flasher |--mac|', []],
    ['flasher |--server|lab|--', ['--catalog', '--help', '--mac']],
    ['flasher |flash|--im', ['--image']],
    ['flasher |flash|--json|--js', []],
    ['flasher |flash|--progress|', ['ndjson', 'none', 'text']],
    ['flasher |flash|--progress|=|n', ['ndjson', 'none']],
    ['flasher |flash|--progress|=', ['ndjson', 'none', 'text']],
    ['flasher |flash|--provision|cl', ['cloud-init']],
    ['flasher |flash|--sha256|', []],
    ['flasher |flash|--image|', ['OLD.IMG', 'a b.qcow2', 'disk.img.zst', 'more']],
    ['flasher |inspect|image|d', ['disk.img.zst']],
    ['flasher |inspect|image|--j', ['--json']],
    ['flasher |flash|--user-data|n', ['notes.txt']],
    ['flasher |list|images|--image-root|', ['more']],
    ['flasher |completion|z', ['zsh']],
    ['flasher |nonsense|', []],
    ['flasher-web |con', ['config']],
    ['flasher-web |config|', ['--help', 'check', 'reference', 'show']],
    ['flasher-web |config|show|--js', ['--json']],
    ['flasher-cache |completion|f', ['fish']],
    ['flasher-cache |add|--ca', ['--catalog']],
    ['flasher-tui |--', ['--help', '--mac', '--server', '--version']],
    ['flasher-tui |completion|z', ['zsh']],
  ]
  for (const [line, words] of rows) {
    const found = await offered(
      fixture.folder,
      line.split('|').map((word) => word.trim()),
    )
    assert.equal(found, words.toSorted(), line)
  }
})
test('bash: a path is offered where no disk fits', async () => {
  await using fixture = await createFixture()
  assert.equal(await offered(fixture.folder, ['flasher', 'flash', '--target', 'no']), ['notes.txt'])
})
test('every shell that is here reads its script', async () => {
  await using fixture = await createFixture()
  for (const name of SHELLS) {
    if (!(await shell.has(name))) continue
    for (const program of ['flasher', 'flasher-web', 'flasher-cache', 'flasher-tui']) {
      const script = join(fixture.folder, scriptOf(program, name))
      const { exitCode, stderr } = await shell.run([name, '-n', script])
      assert.equal({ script, exitCode, stderr }, { script, exitCode: 0, stderr: '' })
    }
  }
})
/** What fish offers, without its descriptions. */
const names = (said: string) =>
  said
    .split('\n')
    .flatMap((row) => row.split('\t', 1))
    .filter(Boolean)

test('fish, where it is here, offers the same', async () => {
  if (!(await shell.has('fish'))) return
  await using fixture = await createFixture()
  const ask = (line: string) =>
    shell.require(['fish', '--no-config', '-c', `source script.fish; complete -C '${line}'`], {
      cwd: fixture.folder,
      env: { HOME: fixture.folder },
    })
  assert.equal(names(await ask('flasher list ')), ['disks', 'images'])
  assert.equal(names(await ask('flasher flash --prog')), ['--progress'])
  assert.equal(names(await ask('flasher flash --progress ')).toSorted(), ['ndjson', 'none', 'text'])
  assert.equal(names(await ask('flasher completion ')).toSorted(), ['bash', 'fish', 'zsh'])
  assert.ok(names(await ask('flasher inspect image d')).includes('disk.img.zst'))
})
test('zsh, where it is here, takes the script as its completion', async () => {
  if (!(await shell.has('zsh'))) return
  await using fixture = await createFixture()
  const ask =
    'autoload -Uz compinit; compinit -D; source script.zsh; print -- ${_comps[flasher]}; whence -w _flasher _flasher_disk'
  const said = await shell.require(['zsh', '-fc', ask], { cwd: fixture.folder })
  assert.is(said, '_flasher\n_flasher: function\n_flasher_disk: function\n')
})
test.run()
