import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createQuestion, layOutScreen, createSubject } from '#flasher/wizard/screens/screen.ts'
import { createMachineCode } from '#flasher/wizard/screens/machine-code.ts'
import { WIZARD } from '#flasher/wizard/options.ts'
import { COMMANDS } from '#flasher/commands/rules/commands.ts'
import { openState } from '#flasher/wizard/flow/flow.ts'
import { createInk } from '#kit/terminal/text/terminal-style.ts'
import { UNTOUCHED, type Menu } from '#kit/terminal/prompt/menu.ts'
import type { Frame, Size } from '#kit/terminal/prompt/painter.ts'
import { runFlasher, startFlasher } from '#test/support/terminal/flasher.ts'

const test = suite('wizard program')
const run = promisify(execFile)

/** Everything that is loaded for a module, packages by their names. */
async function listLoaded(...modules: readonly string[]): Promise<readonly string[]> {
  const script = `
    import { registerHooks } from 'node:module'
    const seen = []
    registerHooks({ load: (url, context, next) => (seen.push(url), next(url, context)) })
    for (const name of ${JSON.stringify(modules)}) {
      await import('${new URL('../../../../runtime/flasher/wizard/', import.meta.url)}' + name)
    }
    console.log(seen.filter((url) => !url.startsWith('node:')).join('\\n'))`
  const { stdout } = await run(process.execPath, ['--input-type=module', '-e', script])
  return stdout.trim().split('\n')
}

test('the first screens load no package and nothing of disks, flashes or the server', async () => {
  const loaded = await listLoaded('program.ts', 'screens/choose-image.ts')
  assert.equal(
    loaded.filter((url) =>
      /node_modules|\/(shell|disks|flasher|writer|sources|server-client)\.ts|remote|\/web\//.test(
        url,
      ),
    ),
    [],
  )
  assert.ok(loaded.length > 20 && loaded.length < 50, `${loaded.length}`)
})
test('without a terminal: what to use instead, exit code 2', async () => {
  for (const argv of [[], ['--catalog', 'x.toml'], ['--server', 'lab']]) {
    assert.equal(await runFlasher(argv), {
      code: 2,
      stdout: '',
      stderr:
        'flasher: the wizard needs a terminal\n  Without one: "flasher flash --image IMAGE --target DISK --yes".\n',
    })
  }
})
test('without a terminal a MAC address must be one', async () => {
  assert.equal(await runFlasher(['--server', 'lab', '--mac', 'zz\u001b[2J']), {
    code: 2,
    stdout: '',
    stderr:
      'flasher: --mac "zz\\u001b[2J" is not a MAC address\n  Write it like 52:54:00:12:34:56.\n',
  })
})
test('without a terminal a server must be one', async () => {
  assert.equal(await runFlasher(['--server', '://x', '--mac', '52:54:00:12:34:56']), {
    code: 2,
    stdout: '',
    stderr: 'flasher: --server "://x" is not an address\n  Write it like http://10.0.0.1:8080.\n',
  })
})
test('without --server the machine server is looked for as flasher-server', async () => {
  const { child, saw, ended } = startFlasher(['--mac', '52:54:00:12:34:56'])
  child.stdin?.end()
  try {
    await saw('server at http://flasher-server and http://flasher-server:8080')
  } finally {
    child.kill()
    await ended
  }
})
test('misuse of its options: 2, with what was wrong', async () => {
  const { code, stderr } = await runFlasher(['--server', 'lab', 'list'])
  assert.is(code, 2)
  assert.match(stderr, /^flasher: unexpected argument: list\n/)
})
test('--help documents every flag of the wizard and every command in 20 lines; --version goes with any', async () => {
  const { code, stdout } = await runFlasher(['--catalog', 'x', '--help'])
  assert.is(code, 0)
  for (const { name, value, help } of WIZARD.flags) {
    assert.match(stdout, new RegExp(`^ {2}--${name} ${value.name} +${RegExp.escape(help)}$`, 'm'))
  }
  for (const { words } of COMMANDS)
    assert.match(stdout, new RegExp(`^ {2}${words.join(' ')} `, 'm'))
  assert.match(stdout, /--version.*--help/)
  assert.is(stdout.trimEnd().split('\n').length, 20)
  const version = await runFlasher(['--server', 'lab', '--version'])
  assert.match(version.stdout, /^flasher \d+\.\d+\.\d+/)
})

const MENU: Menu = {
  prompt: 'Image',
  columns: [{ title: 'Name', least: 5 }],
  rows: Array.from({ length: 30 }, (_, n) => ({ cells: [`image-${n + 1}.img`], refusal: null })),
  keys: [{ key: 'q', words: ['quit'], does: 'quit' }],
  enter: null,
}
const identity = { mac: '52:54:00:12:34:56', server: 'http://lab:8080', address: '192.0.2.17' }
const NOTICE = `The server sent no plan: ${'it does not answer, '.repeat(20)}so choose yourself.`
const state = openState({
  screen: 'image',
  catalog: `http://lab/${'x'.repeat(90)}`,
  notice: NOTICE,
  identity,
})
const drawing = {
  setting: { version: '1.2.3', identity, imageRoot: '/var/lib/flasher/images', reboots: true },
  ink: createInk({ colour: false }),
  unicode: false,
  tty: true,
}

test('whatever the size, the frame fits, and the image root, the reason and the prompt are there', () => {
  const question = createQuestion(state, { menu: MENU, intro: () => [] }, drawing)
  for (const columns of [40, 60, 80, 132, 200]) {
    for (const rows of [16, 24, 25, 43, 50]) {
      const { lines, cursor } = question.frame(UNTOUCHED, { columns, rows })
      assert.ok(lines.length <= rows, `${lines.length} lines in ${rows}`)
      for (const line of lines) assert.ok(line.length < columns, line)
      assert.ok(lines.includes('Images in: /var/lib/flasher/images'))
      assert.ok(lines.some((line) => /^Catalog: .*step 1 is skipped\)$/.test(line)))
      assert.ok(lines.some((line) => line.startsWith('The server sent no plan')))
      assert.is(lines[cursor?.row ?? 0], '> Image: ')
    }
  }
})
/** Whether the address of the machine's page is shown, and the code. */
const shows = ({ lines }: Frame) => [
  lines.some((line) => line.includes('lab:8080/m/525400123456')),
  lines.some((line) => line.includes('█▀▀▀')),
]

test('the code of the machine takes the rows that nothing asked for needs', () => {
  const code = createMachineCode('HTTP://LAB:8080/M/525400123456', { unicode: true })
  const [calm, short] = [{ ...state, notice: null }, MENU.rows.slice(0, 3)]
  const frameOf = (rows: Menu['rows'], size: Size, isPlain = false) => {
    const menu = { ...MENU, rows }
    const plain = { ...drawing, unicode: true }
    const coded = isPlain ? plain : { ...plain, code }
    return createQuestion(calm, { menu, intro: () => [] }, coded).frame(UNTOUCHED, size)
  }
  const [console_, text, tiny] = [
    { columns: 128, rows: 48 },
    { columns: 80, rows: 24 },
    { columns: 30, rows: 8 },
  ]
  assert.equal(shows(frameOf(short, console_)), [true, true])
  assert.equal(shows(frameOf(short, text)), [true, false])
  assert.equal(shows(frameOf(short, tiny)), [false, false])
  for (const size of [console_, text, tiny]) {
    for (const rows of [[], short, MENU.rows]) {
      const [with_, without] = [frameOf(rows, size), frameOf(rows, size, true)]
      assert.equal(with_.cursor, without.cursor)
      // Nothing above moves, and the list keeps its page.
      const count = without.lines.length
      assert.equal(with_.lines.slice(0, count), without.lines)
      assert.ok(with_.lines.length <= Math.max(size.rows, count))
      for (const line of with_.lines) assert.ok(line.length < size.columns, line)
    }
  }
})
test('on 40x12 a list keeps its rows, and what asks nothing keeps its newest lines', () => {
  const size = { columns: 40, rows: 12 }
  const calm = { ...state, notice: null }
  const { lines } = createQuestion(calm, { menu: MENU, intro: () => [] }, drawing).frame(
    UNTOUCHED,
    size,
  )
  assert.is(lines.length, 12)
  assert.is(lines.filter((line) => line.includes('image-')).length, 4)
  const body = [
    'one',
    '',
    ...Array.from({ length: 12 }, (_, at) => `said ${at}`),
    '',
    'Ctrl-C cancels',
  ]
  const shown = layOutScreen(calm, body, drawing, size).lines
  assert.is(shown.length, 12)
  assert.equal(shown.slice(-2), ['said 11', 'Ctrl-C cancels'])
})
test('news redraws a question, however many listen and however they come and go', async () => {
  let built = 0
  const tellers: (() => void)[] = []
  const { promise, resolve } = Promise.withResolvers<void>()
  const subject = createSubject(
    () => {
      built += 1
      return createQuestion(state, { menu: MENU, intro: () => [] }, drawing)
    },
    (changed) => {
      tellers.push(changed)
      return promise
    },
  )
  assert.is(subject.now(), subject.now())
  assert.equal(tellers, [], 'nothing is looked up before the question is shown')
  const settled = subject.settle()
  assert.is(subject.settle(), settled)
  let heard = 0
  const listen = () => {
    const stop = subject.onChange(() => {
      heard += 1
      stop()
      listen()
    })
  }
  listen()
  tellers.forEach((tell) => tell())
  assert.is(heard, 1)
  subject.now()
  assert.is(built, 2)
  resolve()
  await settled
})
test.run()
