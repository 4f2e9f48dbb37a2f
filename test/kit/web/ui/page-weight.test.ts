/** What the pages weigh on the wire with 10,000 machines, in both codings that browsers ask for. */
import { createHash } from 'node:crypto'
import { get } from 'node:http'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { parseMac } from '../../../../runtime/kit/net/rules/mac.ts'
import { createMachine, type Machine } from '../../../../runtime/server/current/rules/machine.ts'
import { readVersion } from '../../../../runtime/kit/host/package-manifest.ts'
import { createServerHome, login } from '../../../support/server/flasher-web.ts'
import { createStateFolder } from '../../../support/server/state.ts'

const MACHINES = 10_000
const EVENTS = 400
const MAX_BYTES = 40_000
const PASSWORD = 'a password for tests'

const test = suite('the weight of pages')

/** The digits have no pattern, which would compress better than what real machines say. */
const digest = (n: number) => createHash('sha256').update(`machine ${n}`).digest('hex')

function machineOf(n: number): Machine {
  const words = digest(n)
  const mac = parseMac(`52:54:00:${words.slice(0, 2)}:${words.slice(2, 4)}:${words.slice(4, 6)}`)
  if (!mac.ok) throw new Error(mac.refusal)
  const at = new Date(Date.now() - n * 61_000).toISOString()
  const serial = words.slice(8, 22).toUpperCase()
  const disk = {
    path: '/dev/nvme0n1',
    size: '953.9G',
    vendor: null,
    model: `SAMSUNG MZVL2${words.slice(30, 36).toUpperCase()}`,
    serial,
    tran: 'nvme',
    removable: false,
    readonly: false,
    size_bytes: 1_024_209_543_168,
  }
  return {
    ...createMachine(mac.value, n % 3 === 0 ? 'flasher-flash-once' : 'ipxe-exit', at),
    discovered_at: at,
    last_seen_at: at,
    last_seen_ip: `10.${n % 200}.${n % 250}.${n % 240}`,
    labels: [`rack-${words.slice(40, 44)}`, `host-${words.slice(44, 52)}`],
    bty_image_ref: digest(n % 50),
    target_disk_serial: serial,
    known_disks: [disk],
    known_disks_at: at,
    arch: 'x86_64',
  }
}

async function startFleet() {
  const stack = new AsyncDisposableStack()
  const folder = stack.use(await createStateFolder())
  const fleet = new Map(
    Array.from({ length: MACHINES }, (_, n) => machineOf(n)).map((each) => [each.mac, each]),
  )
  {
    await using state = await folder.open({ release: await readVersion() })
    await state.machines.updateMany(
      [...fleet.values()].map((each) => ({ mac: each.mac, change: () => each, hardware: null })),
    )
    for (const mac of [...fleet.keys()].slice(0, EVENTS)) {
      await state.journal.record({
        kind: 'machine.upserted',
        subject_kind: 'machine',
        subject_id: mac,
        actor: 'operator',
        source_ip: '10.0.0.1',
        summary: `${mac} was changed`,
        details: { bty_image_ref: digest(1), boot_mode: 'ipxe-exit', labels: [mac] },
      })
    }
  }
  const home = stack.use(await createServerHome())
  const server = stack.use(
    await home.start([], {
      FLASHER_ADMIN_PASSWORD: PASSWORD,
      FLASHER_PATHS_STATE_DIR: folder.dir,
    }),
  )
  const { cookie } = await login(server.url, PASSWORD)
  const some = [...fleet.keys()][7] ?? ''
  return {
    some,
    weigh: (path: string, accepts: string) =>
      new Promise<number>((resolve, reject) => {
        get(`${server.url}${path}`, { headers: { cookie, 'accept-encoding': accepts } }, (sent) => {
          if (sent.statusCode !== 200) reject(new Error(`${path}: ${sent.statusCode}`))
          Array.fromAsync<Buffer, number>(sent, (part) => part.length).then(
            (parts) => resolve(parts.reduce((sum, each) => sum + each, 0)),
            reject,
          )
        }).once('error', reject)
      }),
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  }
}

test(`with ${MACHINES} machines no page is heavier than ${MAX_BYTES} bytes`, async () => {
  await using fleet = await startFleet()
  const paths = [
    ['/ui/dashboard', '/ui/machines', '/ui/machines?view=wall', '/ui/machines?page=57'],
    [`/ui/machines/${fleet.some}`, '/ui/runs', '/ui/netboot', '/ui/backups', '/ui/events'],
    ['/ui/settings', '/ui/account', '/docs/api'],
  ].flat()
  for (const accepts of ['gzip, deflate', 'gzip, br']) {
    for (const path of paths) {
      const bytes = await fleet.weigh(path, accepts)
      assert.ok(bytes > 500 && bytes <= MAX_BYTES, `${path} (${accepts}): ${bytes} bytes`)
      console.log(accepts, path, bytes, await fleet.weigh(path, 'identity'))
    }
  }
})

test.run()
