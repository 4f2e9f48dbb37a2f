/** The way from the earlier line: its state becomes a fleet of the current line, and is only read. */
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createEarlierServer } from '#test/support/server/earlier-server.ts'
import { createServerHome } from '#test/support/server/flasher-web.ts'

const test = suite('flasher-web import --from earlier')

const [FIRST, SECOND, THIRD] = ['52:54:00:00:00:01', '52:54:00:00:00:02', '52:54:00:00:00:03']
const NOTHING = { FLASHER_CONFIG_FILE: '/dev/null' }

const entry = (name: string, src: string) => ({
  name,
  src,
  format: 'img.zst',
  arch: 'x86_64',
  size_bytes: 1000,
  sha256: createHash('sha256').update(name).digest('hex'),
})

/** A cache service whose catalog has one image by name, one by its source, and two of one file name. */
async function serveCatalog() {
  const entries = [
    entry('debian.img.zst', 'http://images.example/1'),
    entry('Fedora 43', 'http://images.example/fedora%2043.img.zst?x'),
    entry('One', 'http://images.example/1/twice.img.zst'),
    entry('Two', 'http://images.example/2/twice.img.zst'),
  ]
  const server = createServer((_, response) => {
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify({ entries, last_error: null }))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  return {
    env: { ...NOTHING, FLASHER_WITHCACHE_URL: `http://127.0.0.1:${address.port}` },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

/** A running server of the earlier line with three machines; `folder` is its state. */
async function createEarlier() {
  const server = await createEarlierServer()
  const operator = await server.operator()
  for (const [mac, body] of [
    [FIRST, { image: 'debian.img.zst', boot_policy: 'flash', hostname: 'box-1' }],
    [
      SECOND,
      {
        image: 'fedora 43.img.zst',
        boot_policy: 'tui',
        provisioning_mode: 'cijoe-online',
        cijoe_workflow_ref: '/srv/check.yaml',
        hostname: 'x'.repeat(100),
      },
    ],
    [THIRD, { image: 'twice.img.zst' }],
  ] as const) {
    const headers = { 'content-type': 'application/json' }
    const init = { method: 'PUT', headers, body: JSON.stringify(body) }
    assert.is((await operator(`/machines/${mac}`, init)).status, 200, mac)
  }
  const folder = join(server.dir, 'state')
  await mkdir(join(folder, 'boot'), { recursive: true })
  for (const name of ['flasher-live-x86_64.vmlinuz', 'flasher-live-x86_64.sha256', 'other.efi']) {
    await writeFile(join(folder, 'boot', name), name)
  }
  return { server, folder, [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() }
}

/** Every file with its content and its times. */
async function photograph(folder: string) {
  const names = (await readdir(folder, { recursive: true })).toSorted()
  return Promise.all(
    names.map(async (name) => {
      const found = await stat(join(folder, name))
      const text = found.isFile() ? await readFile(join(folder, name), 'latin1') : ''
      return [name, found.mode, found.mtimeMs, createHash('sha256').update(text).digest('hex')]
    }),
  )
}

test('machines come in as flasher-inventory with names and images, and the rest is listed', async () => {
  await using catalog = await serveCatalog()
  await using earlier = await createEarlier()
  await using home = await createServerHome()
  const run = async (...more: readonly string[]) => {
    const argv = ['import', '--from', 'earlier', '--json', ...more, earlier.folder]
    const { code, stdout, stderr } = await home.run(argv, catalog.env)
    assert.is(code, 0, stderr)
    return JSON.parse(stdout)
  }

  const dry = await run('--dry-run')
  assert.equal([dry.schema_version, dry.command, dry.dry_run], ['1', 'import', true])
  assert.equal([dry.added, dry.kept, dry.unreadable, dry.catalog_error], [3, 0, 0, null])
  // The same from a server that was stopped: from here on only we could change its folder.
  await earlier.server.stop()
  const before = await photograph(earlier.folder)
  const again = await run('--dry-run')
  assert.equal(again, dry)

  const real = await run()
  assert.equal({ ...real, dry_run: true }, dry)
  const [first, second, third] = real.machines
  assert.equal([first.mac, first.name, first.action], [FIRST, 'box-1', 'added'])
  assert.match(first.bty_image_ref, /^[0-9a-f]{64}$/)
  assert.equal(first.left, [
    'The boot policy flash: the machine reports its disks, and is flashed once you set its mode.',
  ])
  assert.match(second.bty_image_ref, /^[0-9a-f]{64}$/)
  assert.is(second.name, null)
  assert.equal(second.left, [
    'The boot policy tui: set the mode flasher-tui to have it ask again.',
    `The host name ${'x'.repeat(100)}: it cannot be a name here.`,
    'The provisioning mode cijoe-online with its files.',
    'The workflow /srv/check.yaml.',
  ])
  assert.is(third.bty_image_ref, null)
  assert.match(third.left.join(' '), '2 images of the catalog have that file name')
  assert.equal(
    real.set_aside.map(({ what }: { what: string }) => what),
    ['boot/flasher-live-x86_64.vmlinuz', 'boot/flasher-live-x86_64.sha256'].toSorted(),
  )
  assert.equal(await photograph(earlier.folder), before)

  const stored = new DatabaseSync(home.at('state/state.db'), { readOnly: true })
  const records = stored
    .prepare('SELECT record FROM machines ORDER BY mac')
    .all()
    .map(({ record }) => JSON.parse(String(record)))
  const events = stored.prepare("SELECT * FROM events WHERE kind = 'system.state.imported'").all()
  stored.close()
  assert.equal(
    records.map(({ mac, boot_mode, target_disk_serial }) => [mac, boot_mode, target_disk_serial]),
    [FIRST, SECOND, THIRD].map((mac) => [mac, 'flasher-inventory', null]),
  )
  assert.is(events.length, 1)

  const last = await run()
  assert.equal([last.added, last.kept], [0, 3])
  assert.equal(await photograph(earlier.folder), before)
})

test('in words; a machine that is here stays as it is', async () => {
  await using earlier = await createEarlier()
  await using home = await createServerHome()
  const argv = ['import', '--from', 'earlier', earlier.folder]
  const { code, stdout } = await home.run([...argv, '--dry-run'], NOTHING)
  assert.is(code, 0)
  assert.match(stdout, `${FIRST} (box-1)\n  not imported: The boot policy flash`)
  assert.match(stdout, 'The image debian.img.zst: no image of that file name is in the catalog.')
  assert.match(stdout, 'boot/flasher-live-x86_64.vmlinuz not imported: its name holds no version')
  assert.match(stdout, 'No images were matched: no cache service is set')
  assert.match(stdout, '3 machines would be added, 0 kept; nothing was changed')

  assert.is((await home.run(argv, NOTHING)).code, 0)
  const file = new DatabaseSync(home.at('state/state.db'))
  const set = file.prepare('UPDATE machines SET record = json_set(record, ?, ?) WHERE mac = ?')
  set.run('$.boot_mode', 'ipxe-exit', FIRST)
  const before = file.prepare('SELECT * FROM machines ORDER BY mac').all()
  const again = await home.run(argv, NOTHING)
  assert.match(again.stdout, `${FIRST} (box-1) exists already and is kept`)
  assert.match(again.stdout, '0 machines added (as flasher-inventory), 3 kept')
  assert.equal(file.prepare('SELECT * FROM machines ORDER BY mac').all(), before)
  file.close()
})

test('the state of a deployed server is read as well', async () => {
  await using home = await createServerHome()
  await mkdir(home.at('deployed'))
  const file = new DatabaseSync(home.at('deployed/state.db'))
  file.exec(
    'CREATE TABLE machines (mac TEXT, image TEXT, boot_policy TEXT, created_at TEXT, hostname TEXT)',
  )
  const insert = file.prepare('INSERT INTO machines VALUES (?, NULL, ?, ?, ?)')
  insert.run(FIRST, 'local', '2026-05-08T10:00:00.123456+00:00', 'old-1')
  insert.run('nonsense', 'local', '', null)
  file.close()
  const before = await photograph(home.at('deployed'))
  const argv = ['import', '--from', 'earlier', '--json', home.at('deployed')]
  const { stdout } = await home.run(argv, NOTHING)
  const { added, unreadable, machines } = JSON.parse(stdout)
  assert.equal([added, unreadable, machines[0].name], [1, 1, 'old-1'])
  assert.equal(await photograph(home.at('deployed')), before)
})

test('anything else is refused, and nothing is changed', async () => {
  await using home = await createServerHome()
  await mkdir(home.at('empty'))
  const missing = await home.run(['import', '--from', 'earlier', home.at('empty')], NOTHING)
  assert.is(missing.code, 1)
  assert.match(missing.stderr, 'holds no state.db')
  {
    await using _current = await home.start([], NOTHING)
  }
  const current = await home.run(['import', '--from', 'earlier', home.at('state')], NOTHING)
  assert.is(current.code, 2)
  assert.match(current.stderr, 'belongs to a server of the current line')
  await writeFile(home.at('empty/state.db'), 'not a database at all'.repeat(100))
  const garbage = await home.run(['import', '--from', 'earlier', home.at('empty')], NOTHING)
  assert.is.not(garbage.code, 0)
  const bundle = await home.run(['import', '--dry-run', home.at('empty')], NOTHING)
  assert.is(bundle.code, 2)
  assert.match(bundle.stderr, '--dry-run needs --from earlier')
})

test.run()
