/** Small services of a live machine: its restart, its hardware, the lines of another console. */
import { appendFile, mkdir, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createHardware } from '#engine/inventory/hardware-reader.ts'
import { followLines } from '#flasher/live-system/live-console.ts'
import { createPower } from '#flasher/live-system/power.ts'
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

test.run()
