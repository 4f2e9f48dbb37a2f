/** Small services of a live machine: its restart, its hardware, the lines of another console. */
import { spawn } from 'node:child_process'
import { EventEmitter, once } from 'node:events'
import { appendFile, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createHardware } from '#engine/inventory/hardware-reader.ts'
import {
  type ConsoleEnvironment,
  followLines,
  serveCurrentConsole,
  takeDriverLock,
} from '#flasher/live-system/live-console.ts'
import { createPower } from '#flasher/live-system/power.ts'
import { startHostileServer } from '#test/support/http/hostile-server.ts'
import { makeTools } from '#test/support/terminal/tool-folder.ts'

const test = suite('live machine')

test('a restart goes by the service manager, else by force', async () => {
  const said = 'echo "$(basename $0) $*" >>$HERE/said'
  {
    await using tools = await makeTools({ systemctl: said, reboot: said })
    assert.equal(await createPower(tools).reboot(), { ok: true, value: null })
    assert.is(await tools.text('said'), 'systemctl reboot\n')
  }
  {
    const systemctl = `${said}\necho 'no bus' >&2\nexit 1`
    await using tools = await makeTools({ systemctl, reboot: said })
    assert.is((await createPower(tools).reboot()).ok, true)
    assert.is(await tools.text('said'), 'systemctl reboot\nreboot -f\n')
  }
  const no = 'echo "not $*" >&2\nexit 1'
  await using tools = await makeTools({ systemctl: no, reboot: no })
  const answer = await createPower(tools).reboot()
  assert.is(answer.ok ? '' : answer.refusal, 'systemctl: not reboot; reboot: not -f')
})

test('the hardware is what lshw says, or unknown', async () => {
  const trees: readonly (readonly [script: string, tree: unknown])[] = [
    [`echo '{"id": "box"}'`, { id: 'box' }],
    [`echo '[{"id": "box"}]'`, [{ id: 'box' }]],
    [`printf '{"id": "%8388608s"}' x`, null],
    ['echo nonsense', null],
    ['echo "1"', null],
    ['exit 3', null],
  ]
  for (const [script, tree] of trees) {
    await using tools = await makeTools({ lshw: script })
    assert.equal(await createHardware(tools).readTree(), tree)
  }
})

/** What ipmitool prints, as a script. */
const printLan = (address: string) =>
  `cat <<'END'\nSet in Progress         : Set Complete\nIP Address Source       : DHCP Address\nIP Address              : ${address}\nSubnet Mask             : 255.255.0.0\nEND`

test('the address of the BMC is what its own device says, where there is one', async () => {
  for (const [script, address] of [
    [printLan('10.20.0.11'), '10.20.0.11'],
    [printLan('0.0.0.0'), null],
    [printLan('bmc.example'), null],
    ['echo "Channel 1 is not a LAN channel" >&2\nexit 1', null],
  ] as const) {
    await using tools = await makeTools({ ipmitool: script })
    const ipmi = tools.at('ipmi0')
    assert.is(await createHardware({ ...tools, ipmi }).readBmcAddress(), null)
    await writeFile(ipmi, '')
    assert.is(await createHardware({ ...tools, ipmi }).readBmcAddress(), address)
  }
})

test('of a boot: how long it lasts, when systemd began, and what the firmware took', async () => {
  await using tools = await makeTools({ systemctl: 'echo "$*" >>$HERE/said; echo 41803000' })
  const hardware = createHardware({ ...tools, root: tools.at('root') })
  const lay = async (path: string, text: string) => {
    await mkdir(dirname(tools.at(path)), { recursive: true })
    await writeFile(tools.at(path), text)
  }
  assert.is(await hardware.readBootTimes(), '')
  await lay('root/proc/uptime', '73.25 102.11\n')
  assert.is(await hardware.readBootTimes(), '&up=73.25&system=41.803')
  await lay('root/sys/firmware/acpi/fpdt/boot/exitbootservice_end_ns', '9123456789\n')
  await lay('root/proc/uptime', '80.00 102.11\n')
  assert.is(await hardware.readBootTimes(), '&up=80.00&system=41.803&firmware=9.123')
  assert.is(await tools.text('said'), 'show --property=UserspaceTimestampMonotonic --value\n')
  await using none = await makeTools({ systemctl: 'echo 0' })
  assert.is(await createHardware(none).readBootTimes(), '')
})

test('of the kernel log the last lines', async () => {
  await using tools = await makeTools({ dmesg: 'seq 1 1000' })
  const lines = await createHardware(tools).readKernelLog()
  assert.equal([lines.length, lines[0], lines.at(-1)], [200, '801', '1000'])
  await using none = await makeTools({ dmesg: 'exit 1' })
  assert.equal(await createHardware(none).readKernelLog(), [])
})

test('lines are followed from the first on, also into a file that comes later', async () => {
  await using tools = await makeTools({})
  const path = tools.at('status')
  const ending = new AbortController()
  const seen: string[] = []
  const following = (async () => {
    for await (const line of followLines(path, { signal: ending.signal, everyMs: 5 })) {
      seen.push(line)
      if (line === 'last') ending.abort()
    }
  })()
  await writeFile(path, 'one\ntw')
  await appendFile(path, 'o\nühr')
  await appendFile(path, 'en\nlast\n')
  await following
  assert.equal(seen, ['one', 'two', 'ühren', 'last'])
})

const DRIVEN =
  'console=tty0 flasher.server=127.0.0.1:2 flasher.mac=52-54-00-00-00-01 flasher.token=t\n'

/** A terminal's keys. */
function createKeyboard() {
  const modes: boolean[] = []
  return Object.assign(new EventEmitter(), {
    isTTY: true,
    modes,
    setRawMode: (isRaw: boolean) => void modes.push(isRaw),
    resume() {},
    pause() {},
  })
}

/** A machine with as many consoles as `start` is called. */
async function boot(kernelArguments: string) {
  const folder = await mkdtemp(join(tmpdir(), 'flasher-live-'))
  const at = (name: string) => join(folder, name)
  await Promise.all(['kmsg', 'console'].map((name) => writeFile(at(name), '')))
  await writeFile(at('cmdline'), kernelArguments)
  await symlink('/dev/tty1', at('screen'))
  await symlink('/dev/ttyS0', at('serial'))
  const ending = new AbortController()
  const paths = {
    kernelArguments: at('cmdline'),
    terminal: at('screen'),
    kmsg: at('kmsg'),
    console: at('console'),
    status: at('status'),
    lock: at('driver'),
    driven: at('run/driven'),
  }
  const started: (readonly [argv: readonly string[], token: string | undefined])[] = []
  // Drivers of disks are being loaded while the consoles start.
  const tool = `#!/bin/sh\nPATH=/usr/bin:/bin\nsleep 0.2\necho "\${0##*/} $*" >>${at('udev')}\n`
  for (const name of ['systemctl', 'udevadm']) await writeFile(at(name), tool, { mode: 0o755 })
  return {
    started,
    text: (name: string) => readFile(at(name), 'utf8'),
    start(wizard: () => Promise<number>, terminal = 'screen') {
      const keyboard = createKeyboard()
      let screen = ''
      const environment: ConsoleEnvironment = {
        paths: { ...paths, terminal: at(terminal) },
        env: { LANG: 'C.UTF-8', PATH: folder },
        stdin: keyboard,
        stdout: { write: (text) => void (screen += text) },
        signal: ending.signal,
        wizard: async (argv, env) => {
          assert.is(env['FLASHER_LIVE'], '1')
          started.push([argv, env['FLASHER_PXE_TOKEN']])
          return await wizard()
        },
      }
      return { keyboard, screen: () => screen, ended: serveCurrentConsole(environment) }
    },
    async [Symbol.asyncDispose]() {
      ending.abort()
      await rm(folder, { recursive: true })
    },
  }
}

async function until(isSo: () => boolean) {
  for (let tries = 0; !isSo(); tries += 1) {
    if (tries > 6000) throw new Error('it never came to that')
    await sleep(10)
  }
}

test('a stick: a wizard on each console', async () => {
  await using machine = await boot('quiet flasher.media=1\n')
  const consoles = [machine.start(async () => 0), machine.start(async () => 3)]
  assert.equal(await Promise.all(consoles.map(({ ended }) => ended)), [0, 3])
  assert.equal(machine.started, [
    [[], undefined],
    [[], undefined],
  ])
  assert.match(await machine.text('kmsg'), /^<6>flasher: entered v\d.*\n/)
  assert.match(await machine.text('status'), /flasher: exiting v\d/)
})

test('a driven machine: one console does it, the other looks on until a key is pressed', async () => {
  await using machine = await boot(DRIVEN)
  const driving = Promise.withResolvers<number>()
  const first = machine.start(() => driving.promise)
  await until(() => machine.started.length === 1)
  assert.equal(machine.started[0], [['--server', '127.0.0.1:2', '--mac', '52-54-00-00-00-01'], 't'])
  const second = machine.start(async () => 0)
  await until(() => second.screen().includes('entered v'))
  assert.match(second.screen(), /Press a key for a wizard of your own/)
  assert.is(machine.started.length, 1)
  second.keyboard.emit('data', Buffer.from('x'))
  assert.is(await second.ended, 0)
  assert.equal(second.keyboard.modes, [true, false])
  assert.equal(machine.started[1]?.[0], [
    '--server',
    'http://127.0.0.1:2',
    '--catalog',
    'http://127.0.0.1:2/catalog.toml',
  ])
  driving.resolve(0)
  assert.is(await first.ended, 0)
})

test('what drives a machine waits for its disks, a person does not', async () => {
  await using machine = await boot(DRIVEN)
  const settled = () => machine.text('udev').catch(() => '')
  const seen: string[] = []
  const look = async () => {
    seen.push(await settled())
    return 0
  }
  assert.is(await machine.start(look).ended, 0)
  assert.is(await machine.start(look).ended, 0)
  // udev may not yet know what there is.
  const waits = 'systemctl start systemd-udev-trigger.service\nudevadm settle --timeout=30\n'
  assert.equal(seen, [waits, waits])
  await using stick = await boot('quiet flasher.media=1\n')
  assert.is(await stick.start(async () => 0).ended, 0)
  assert.is(await stick.text('udev').catch(() => ''), '')
})

test('a person does not wait for a server that is the only one it can be', async () => {
  const asked: string[] = []
  await using server = await startHostileServer(({ url = '' }, response) => {
    asked.push(url)
    response.end('{}')
  })
  const { host } = new URL(server.origin)
  await using machine = await boot(`flasher.server=${host}\n`)
  assert.is(await machine.start(async () => 0).ended, 0)
  assert.equal(machine.started[0]?.[0].slice(-1), [`${server.origin}/catalog.toml`])
  assert.equal(asked, [])
})

test('the screen drives, also when the serial line was there a little earlier', async () => {
  await using machine = await boot(DRIVEN)
  const serial = machine.start(async () => 0, 'serial')
  await sleep(20)
  const driving = Promise.withResolvers<number>()
  const screen = machine.start(() => driving.promise)
  await until(() => serial.screen().includes('Press a key'))
  assert.equal(
    machine.started.map(([argv]) => argv[2]),
    ['--mac'],
  )
  driving.resolve(7)
  assert.is(await screen.ended, 7)
  serial.keyboard.emit('data', Buffer.from('x'))
  assert.is(await serial.ended, 0)
})

test('a program that died is tried three times in a boot', async () => {
  await using machine = await boot(DRIVEN)
  for (const _ of [1, 2, 3, 4]) {
    const died = machine.start(() => Promise.reject(new Error('died')))
    await died.ended.catch(() => {})
  }
  const flags = machine.started.map(([argv]) => argv[2])
  assert.equal(flags, ['--mac', '--mac', '--mac', '--catalog'])
})

test('what came to its end in this boot is not tried again by a program that is started anew', async () => {
  await using machine = await boot(DRIVEN)
  assert.is(await machine.start(async () => 1).ended, 1)
  assert.is(await machine.start(async () => 0).ended, 0)
  const flags = machine.started.map(([argv]) => argv[2])
  assert.equal(flags, ['--mac', '--catalog'])
})

const MODULE = new URL('../../../runtime/flasher/live-system/live-console.ts', import.meta.url).href
const NAME = `/run/flasher/test-${process.pid}`

/** Another process that takes the lock and keeps it until it is killed. */
async function startHolder() {
  const script = `
    import { takeDriverLock } from ${JSON.stringify(MODULE)}
    console.log((await takeDriverLock(${JSON.stringify(NAME)})) === null ? 'busy' : 'held')
    setInterval(() => {}, 1000)`
  const child = spawn(process.execPath, ['--input-type=module', '--eval', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const [said] = await once(child.stdout, 'data')
  return {
    said: String(said).trim(),
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL')
      await once(child, 'exit')
    },
  }
}

test('one holder at a time, and whoever is killed holds nothing', async () => {
  {
    await using holder = await startHolder()
    assert.is(holder.said, 'held')
    assert.is(await takeDriverLock(NAME), null)
  }
  {
    await using lock = await takeDriverLock(NAME)
    assert.is.not(lock, null)
    await using other = await startHolder()
    assert.is(other.said, 'busy')
  }
  await using again = await takeDriverLock(NAME)
  assert.is.not(again, null)
})

test.run()
