import { execFile } from 'node:child_process'
import {
  chmod,
  lstat,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rm,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { parseSettings, SETTINGS } from '#server/current/settings/rules/settings.ts'
import { readConfig } from '#kit/config/config.ts'
import { decideLock } from '#kit/config/rules/settings-parser.ts'

const run = promisify(execFile)

/** A system's folder with some files, and its configuration read as often as a test wants. */
async function createPlace(files: Readonly<Record<string, string>>) {
  const dir = await mkdtemp(join(tmpdir(), 'flasher-config-'))
  await mkdir(join(dir, 'etc/conf.d'), { recursive: true })
  await mkdir(join(dir, 'flasher'))
  for (const [name, text] of Object.entries(files)) await writeFile(join(dir, name), text)
  return {
    dir,
    at: (name: string) => join(dir, name),
    text: (name: string) => readFile(join(dir, name), 'utf8'),
    open: (env: Readonly<Record<string, string>> = {}, named: readonly string[] = []) =>
      readConfig(
        { table: SETTINGS, parse: parseSettings },
        { env: { XDG_STATE_HOME: dir, ...env }, isRoot: false, systemDir: join(dir, 'etc') },
        { lists: { config: named.map((name) => join(dir, name)) } },
      ),
    [Symbol.asyncDispose]: () => rm(dir, { recursive: true, force: true }),
  }
}

const fails = async (work: Promise<unknown>): Promise<string> => {
  try {
    await work
  } catch (thrown) {
    return thrown instanceof Error ? thrown.message : String(thrown)
  }
  return 'nothing failed'
}

const test = suite('config')

test('all usual files count, the earlier in order winning key by key', async () => {
  await using place = await createPlace({
    'etc/conf.d/20-b.toml': '[server]\nport = 2\nhost = "127.0.0.2"\n',
    'etc/conf.d/10-a.toml': '[server]\nport = 1\n',
    'etc/conf.d/notes.txt': 'no TOML at all =',
    'etc/flasher.toml': '[server]\nport = 3\n[pxe]\nmax_flashes = 3\n',
    'flasher/flasher.toml': '[pxe]\nmax_flashes = 4\nloop_limit = 4\n',
  })
  const config = await place.open()
  const { server, pxe } = config.current()
  assert.equal([server.port, server.host, pxe.max_flashes, pxe.loop_limit], [1, '127.0.0.2', 3, 4])
  assert.equal(
    config.paths(),
    [
      'etc/conf.d/10-a.toml',
      'etc/conf.d/20-b.toml',
      'etc/flasher.toml',
      'flasher/flasher.toml',
    ].map(place.at),
  )
})

test('the state directory that a file names holds the last file', async () => {
  await using place = await createPlace({ 'etc/flasher.toml': '' })
  await mkdir(place.at('else'))
  await writeFile(place.at('etc/flasher.toml'), `[paths]\nstate_dir = "${place.at('else')}"\n`)
  await writeFile(place.at('else/flasher.toml'), '[pxe]\nloop_limit = 9\n')
  const config = await place.open()
  assert.is(config.stateDir, place.at('else'))
  assert.is(config.current().pxe.loop_limit, 9)
})

test('what is named is all that is read', async () => {
  await using place = await createPlace({
    'etc/flasher.toml': '[pxe]\nmax_flashes = 3\n',
    'flasher/flasher.toml': '[pxe]\nloop_limit = 4\n',
    'a.toml': '[server]\nport = 7\n',
    'b.toml': '[server]\nport = 8\nhost = "127.0.0.8"\n[admin]\npassword = "from b"\n',
  })
  for (const config of [
    await place.open({}, ['a.toml', 'b.toml']),
    await place.open({ FLASHER_CONFIG_FILE: place.at('a.toml') }),
    await place.open({ FLASHER_CONFIG_DIR: place.dir }),
  ]) {
    assert.is(config.current().server.port, 7)
    assert.equal([config.current().pxe.max_flashes, config.current().pxe.loop_limit], [0, 5])
  }
  const both = await place.open({}, ['a.toml', 'b.toml'])
  assert.is(both.current().server.host, '127.0.0.8')
  // The whole of a named file counts, the password too.
  assert.is(both.current().admin.password, 'from b')
})

test('files that cannot be used are named with the place in them', async () => {
  await using place = await createPlace({
    'etc/flasher.toml': '[server]\nport = 80\nhost = "x\nb = 1\n',
    'secret.toml': '[admin]\npassword = "hunter2\nx = 1\n',
    'type.toml': '[server]\nport = "x"\n',
  })
  assert.match(await fails(place.open()), /etc\/flasher\.toml:\d+:\d+: .*\n[^]*host = "x/)
  assert.not.match(await fails(place.open({}, ['secret.toml'])), 'hunter2')
  assert.match(
    await fails(place.open({}, ['type.toml'])),
    /type\.toml:2: server\.port must be a whole/,
  )
  assert.match(
    await fails(place.open({}, ['nothing.toml'])),
    /nothing\.toml cannot be read: .*nothing\.toml does not exist/,
  )
})

test('an edit goes into the file that holds the key, and is in effect', async () => {
  await using place = await createPlace({
    'etc/flasher.toml': '# mine\n[pxe] # p\nmax_flashes =  3   # three\n',
    'flasher/flasher.toml': '[server]\nport = 1\n',
  })
  const config = await place.open()
  const edited = await config.edit([{ section: 'pxe', key: 'max_flashes', text: ' 12 ' }])
  assert.ok(edited.ok)
  if (edited.ok) {
    assert.equal(edited.value.edited, [
      { name: 'pxe.max_flashes', path: place.at('etc/flasher.toml'), line: 3 },
    ])
    assert.equal(edited.value.changed, ['pxe.max_flashes'])
  }
  assert.is(config.current().pxe.max_flashes, 12)
  assert.is(
    await place.text('etc/flasher.toml'),
    '# mine\n[pxe] # p\nmax_flashes =  12   # three\n',
  )
  const port = await config.edit([{ section: 'server', key: 'port', text: '99' }])
  assert.ok(port.ok && port.value.pending.includes('server.port'))
  assert.is(config.current().server.port, 1)
  assert.ok(config.list().find(({ key }) => key === 'port')?.isPending)
  const fresh = await config.edit([{ section: 'log', key: 'level', text: 'warn' }])
  assert.ok(fresh.ok && fresh.value.edited[0]?.path === place.at('etc/flasher.toml'))
  const gone = await config.edit([{ section: 'pxe', key: 'max_flashes', text: '' }])
  assert.ok(gone.ok && gone.value.edited[0]?.line === null)
  assert.is(config.current().pxe.max_flashes, 0)
  assert.match(await place.text('etc/flasher.toml'), /^# mine\n\[pxe\] # p\n/)
})

test('edits at one moment are made one after the other', async () => {
  await using place = await createPlace({ 'etc/flasher.toml': '' })
  const config = await place.open()
  const keys = ['max_flashes', 'loop_limit', 'discovery_per_minute', 'discovery_rows'] as const
  const edits = keys.map((key) => config.edit([{ section: 'pxe', key, text: '33' }]))
  assert.ok((await Promise.all(edits)).every(({ ok }) => ok))
  assert.equal(
    keys.map((key) => config.current().pxe[key]),
    [33, 33, 33, 33],
  )
})

test('what may not be edited is refused with the reason', async () => {
  await using place = await createPlace({ 'etc/flasher.toml': '[pxe]\nloop_limit = 3\n' })
  const config = await place.open({ FLASHER_SERVER_PORT: '5' })
  config.useSaved(() => ({ 'boot.release_repo': 'a/b' }))
  const rows = [
    ['server', 'port', '6', 'overruled'],
    ['boot', 'release_repo', 'c/d', 'overruled'],
    ['pxe', 'loop_limit', 'many', 'invalid'],
    ['pxe', 'loop_limit', '0', 'invalid'],
    ['pxe', 'nothing', '1', 'unknown'],
    ['__proto__', 'toString', '1', 'unknown'],
    ['admin', 'password', 'x', 'secret'],
  ] as const
  for (const [section, key, text, why] of rows) {
    const refused = await config.edit([{ section, key, text }])
    const reason = refused.ok ? 'accepted' : refused.refusal.get(`${section}.${key}`)?.why
    assert.is(reason, why, `${section}.${key}`)
  }
  assert.is(await place.text('etc/flasher.toml'), '[pxe]\nloop_limit = 3\n')
})

test('several edits are made together or not at all, and each in the file of its key', async () => {
  await using place = await createPlace({
    'etc/flasher.toml': '[pxe]\nloop_limit = 3 # three\n',
    'flasher/flasher.toml': '[log]\nlevel = "warn"\n',
  })
  const config = await place.open()
  const edits = [
    { section: 'pxe', key: 'loop_limit', text: '4' },
    { section: 'log', key: 'level', text: 'error' },
    { section: 'pxe', key: 'flash_silence', text: '1h 30 min' },
  ]
  const wrong = { section: 'pxe', key: 'max_flashes', text: 'many' }
  const refused = await config.edit([...edits, wrong])
  assert.ok(!refused.ok)
  if (!refused.ok) assert.equal([...refused.refusal.keys()], ['pxe.max_flashes'])
  assert.is(await place.text('etc/flasher.toml'), '[pxe]\nloop_limit = 3 # three\n')
  assert.ok((await config.edit(edits)).ok)
  assert.is(
    await place.text('etc/flasher.toml'),
    '[pxe]\nloop_limit = 4 # three\nflash_silence = "90m"\n',
  )
  assert.is(await place.text('flasher/flasher.toml'), '[log]\nlevel = "error"\n')
  assert.is(config.current().pxe.flash_silence, 5400)
})

test('where the second of two files cannot be written, the first one is as it was', async () => {
  if (process.geteuid?.() !== 0) return
  await using place = await createPlace({ 'etc/flasher.toml': '[pxe]\nloop_limit = 3 # three\n' })
  await run('mount', ['-t', 'tmpfs', '-o', 'size=8k', 'tmpfs', place.at('flasher')])
  try {
    await writeFile(place.at('flasher/flasher.toml'), '[log]\nlevel = "warn"\n')
    const config = await place.open()
    // The disk of the second file is full by now.
    await writeFile(place.at('flasher/full'), Buffer.alloc(8192)).catch(() => undefined)
    const edits = [
      { section: 'pxe', key: 'loop_limit', text: '4' },
      { section: 'log', key: 'level', text: 'error' },
    ]
    assert.match(await fails(config.edit(edits)), /flasher\.toml cannot be written: .*space/i)
    assert.is(await place.text('etc/flasher.toml'), '[pxe]\nloop_limit = 3 # three\n')
    assert.is(config.current().pxe.loop_limit, 3)
  } finally {
    await run('umount', [place.at('flasher')])
  }
})

test('what cannot be written is known before anybody tries', async () => {
  if (process.geteuid?.() !== 0) return
  await using place = await createPlace({ 'etc/flasher.toml': '[pxe]\nloop_limit = 3\n' })
  const config = await place.open({ FLASHER_SERVER_PORT: '5' })
  const lockOf = async (name: string) => {
    const row = config.list().find((each) => each.name === name)
    return row && decideLock(row, await config.listEditPaths())
  }
  assert.is(await lockOf('pxe.loop_limit'), null)
  assert.equal(await lockOf('server.port'), {
    why: 'environment',
    variable: 'FLASHER_SERVER_PORT',
  })
  assert.equal(await lockOf('admin.password'), { why: 'kept' })
  const etc = place.at('etc')
  await run('mount', ['--bind', etc, etc])
  try {
    await run('mount', ['-o', 'remount,ro,bind', etc])
    const paths = [place.at('etc/flasher.toml')]
    assert.equal(await lockOf('pxe.loop_limit'), { why: 'read-only', paths })
    // Another one goes into the file of the state directory.
    assert.is(await lockOf('pxe.max_flashes'), null)
  } finally {
    await run('umount', [etc])
  }
})

test('mode, owner and links stay, and nothing is left beside', async () => {
  await using place = await createPlace({ 'real.toml': '[pxe]\nloop_limit = 3\n' })
  await symlink('../real.toml', place.at('etc/flasher.toml'))
  await chmod(place.at('real.toml'), 0o604)
  const config = await place.open()
  assert.ok((await config.edit([{ section: 'pxe', key: 'loop_limit', text: '4' }])).ok)
  assert.ok((await lstat(place.at('etc/flasher.toml'))).isSymbolicLink())
  assert.is((await stat(place.at('real.toml'))).mode & 0o777, 0o604)
  assert.is(await place.text('real.toml'), '[pxe]\nloop_limit = 4\n')
  assert.equal((await readdir(place.dir)).toSorted(), ['etc', 'flasher', 'real.toml'])
})

test('a first file is made for its owner and group alone', async () => {
  await using place = await createPlace({})
  const config = await place.open()
  const edited = await config.edit([{ section: 'pxe', key: 'loop_limit', text: '4' }])
  assert.ok(edited.ok && edited.value.edited[0]?.path === place.at('etc/flasher.toml'))
  assert.is((await stat(place.at('etc/flasher.toml'))).mode & 0o777, 0o640)
})

test('a file that is mounted by itself is rewritten in place', async () => {
  if (process.geteuid?.() !== 0) return
  await using place = await createPlace({
    'etc/flasher.toml': '',
    'mine.toml': '# long\n[pxe]\nloop_limit = 300 # x\n',
  })
  await run('mount', ['--bind', place.at('mine.toml'), place.at('etc/flasher.toml')])
  try {
    const config = await place.open()
    assert.ok((await config.edit([{ section: 'pxe', key: 'loop_limit', text: '4' }])).ok)
    assert.is(await place.text('mine.toml'), '# long\n[pxe]\nloop_limit = 4 # x\n')
    assert.equal(await readdir(place.at('etc')), ['conf.d', 'flasher.toml'])
  } finally {
    await run('umount', [place.at('etc/flasher.toml')])
  }
})

test('reading again applies what it can, and leaves all as it was when the files are broken', async () => {
  await using place = await createPlace({ 'etc/flasher.toml': '[pxe]\nloop_limit = 3\n' })
  const config = await place.open()
  const heard: string[] = []
  config.listen(({ changed }) => void heard.push(...changed))
  await writeFile(place.at('etc/flasher.toml'), '[pxe]\nloop_limit = 6\n[server]\nport = 9\n')
  const { changed, pending } = await config.reload()
  assert.equal([changed, pending, heard], [['pxe.loop_limit'], ['server.port'], ['pxe.loop_limit']])
  await writeFile(place.at('etc/flasher.toml'), '[pxe]\nloop_limit = \n')
  assert.match(await fails(config.reload()), /flasher\.toml:2/)
  assert.is(config.current().pxe.loop_limit, 6)
  await writeFile(place.at('etc/flasher.toml'), '[pxe]\nloop_limit = "x"\n')
  assert.match(await fails(config.reload()), /pxe\.loop_limit must be/)
  assert.is(config.current().pxe.loop_limit, 6)
})

test('what pages saved stands between variables and files', async () => {
  await using place = await createPlace({ 'etc/flasher.toml': '[backup]\nretention = 3\n' })
  const config = await place.open({ FLASHER_BACKUP_CADENCE: 'weekly' })
  let saved: Record<string, string> = { 'backup.retention': '4', 'backup.cadence': 'daily' }
  config.useSaved(() => saved)
  assert.equal([config.current().backup.retention, config.current().backup.cadence], [4, 'weekly'])
  saved = {}
  assert.equal(config.readSaved().changed, ['backup.retention'])
  assert.is(config.current().backup.retention, 3)
})

test('nothing that is shown holds a secret', async () => {
  await using place = await createPlace({
    'etc/flasher.toml':
      '[admin]\npassword = "hunter2"\n[backup]\ndriver_options = { secretAccessKey = "hunter2" }\n',
  })
  const config = await place.open({ FLASHER_SERVER_SESSION_SECRET: 'hunter2hunter2hunter2' })
  const shown = JSON.stringify(config.list())
  assert.not.match(shown, 'hunter2')
  const secrets = config.list().filter(({ shown: text }) => text === 'set')
  assert.equal(
    secrets.map(({ section, key }) => `${section}.${key}`),
    ['admin.password', 'server.session_secret', 'backup.driver_options'],
  )
})

test.run()
