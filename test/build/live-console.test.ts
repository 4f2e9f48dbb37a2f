/** What keeps the wizard on a console: it comes again by a key, and a line that is dead costs nothing. */
import { execFileSync, spawnSync } from 'node:child_process'
import {
  cpSync,
  mkdirSync,
  mkdtempDisposableSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { collectImports } from '#build/cache/imports.ts'
import { IMAGES_PARTITION, KERNEL_ARGS, LIVE_PATHS } from '#appliance/contract.ts'
import { chooseImagesPartition } from '#engine/disk/rules/images-partition.ts'
import { openTerminal } from '#test/support/terminal/tmux.ts'

const test = suite('console of the live system')
const SCRIPT = join(import.meta.dirname, '../../overlays/live/usr/lib/flasher/live/console')

interface Scene {
  /** How the wizard ends. */
  readonly code: number
  readonly typed: string
}

/** How often the wizard starts, and whether a rest is the last that is seen. Rests take no time here: a shell's own `sleep` comes first. */
function play({ code, typed }: Scene) {
  using folder = mkdtempDisposableSync(join(tmpdir(), 'flasher-console-'))
  const log = join(folder.path, 'log')
  const script = readFileSync(SCRIPT, 'utf8')
  assert.match(script, `home=${LIVE_PATHS.home}\n`)
  const wizard = `#!/bin/sh\necho wizard >>${log}\nexit ${code}\n`
  writeFileSync(join(folder.path, 'node'), wizard, { mode: 0o755 })
  const ours = script.replace(
    'live=/usr/lib/flasher/live\n',
    `live=${folder.path}; sleep() { echo "rest $1" >>${log}; }\n`,
  )
  // busybox's shell and this one agree on all that is used.
  const { status } = spawnSync('bash', ['-c', ours], { input: typed, timeout: 30_000 })
  const lines = readFileSync(log, 'utf8').trim().split('\n')
  return {
    status,
    starts: lines.filter((line) => line === 'wizard').length,
    hasRested: lines.at(-1) === 'rest 20',
  }
}

for (const code of [0, 1]) {
  test(`a dead line, a wizard that ends with ${code}: one start, then a rest`, () => {
    assert.equal(play({ code, typed: '' }), { status: 0, starts: 1, hasRested: true })
  })

  test(`Enter, a wizard that ends with ${code}: it starts again`, () => {
    assert.equal(play({ code, typed: '\n\n' }), { status: 0, starts: 3, hasRested: true })
  })
}

const OVERLAY = join(import.meta.dirname, '../../overlays/service/usr/lib')
const isThere = spawnSync('systemd-analyze', ['--version']).status === 0
const run = isThere ? test : test.skip

/** 0 is best, 10 worst. */
function judge(unit: string, dropIn: string | null): number {
  const folder = mkdtempSync(join(tmpdir(), 'flasher-units-'))
  try {
    const file = join(folder, unit)
    cpSync(join(OVERLAY, 'systemd/system', unit), file)
    if (dropIn !== null) {
      mkdirSync(`${file}.d`)
      cpSync(join(OVERLAY, 'flasher/service', dropIn), join(`${file}.d`, dropIn))
    }
    const argv = ['security', '--offline=yes', '--no-pager', file]
    const { stdout, stderr } = spawnSync('systemd-analyze', argv, { encoding: 'utf8' })
    const [, level] = /Overall exposure level for .*: ([\d.]+)/.exec(stdout) ?? []
    assert.ok(level !== undefined, stdout + stderr)
    return Number(level)
  } finally {
    rmSync(folder, { recursive: true })
  }
}

const [web, cacheUnit, earlier] = [
  () => judge('flasher-web.service', null),
  () => judge('flasher-cache.service', null),
  () => judge('flasher-web.service', 'earlier-web.conf'),
]

run('server and cache are below 3', () => {
  assert.ok(web() < 3)
  assert.ok(cacheUnit() < 3)
  // It runs as root.
  assert.ok(judge('flasher-proxy.service', null) < 5)
})

run('the server of the earlier line gains privileges on purpose, and no more than it did', () => {
  const level = earlier()
  assert.ok(level < 6.5, String(level))
})

run('the document has these figures', () => {
  const text = readFileSync('docs/appliance.md', 'utf8').replaceAll('\n', ' ')
  const [, ours, theirs] =
    /rates [^.]* (\d\.\d)\. The server of the earlier line has (\d\.\d):/.exec(text) ?? []
  assert.equal([Number(ours), Number(ours), Number(theirs)], [web(), cacheUnit(), earlier()])
})

const read = (path: string) => readFileSync(join(import.meta.dirname, '../..', path), 'utf8')
const UNIT = 'overlays/usb/usr/lib/systemd/system/flasher-grow.service'
const RULES = 'overlays/usb/usr/lib/udev/rules.d/90-flasher-images.rules'
const ROOT = 'overlays/initrd/lib/flasher/root.sh'

test('an exFAT label fits, and Windows shows it as it is', () => {
  assert.match(IMAGES_PARTITION.label, /^[A-Z_]{1,11}$/)
})

test('the unit mounts once, where the wizard looks', () => {
  const unit = read(UNIT)
  assert.match(unit, `ConditionPathIsMountPoint=!${LIVE_PATHS.images}\n`)
  assert.match(unit, `EnvironmentFile=-${LIVE_PATHS.bootFacts}\n`)
  assert.match(unit, `ConditionKernelCommandLine=!${KERNEL_ARGS.mac}\n`)
  assert.match(read('overlays/usb/usr/lib/flasher/live/grow'), `home=${LIVE_PATHS.home}\n`)
})

test('a slow machine has the time that it takes', () => {
  // 60 s were too few where a busy host emulates the processor.
  assert.ok(Number(/^TimeoutStartSec=(\d+)$/m.exec(read(UNIT))?.[1]) >= 300)
})

test('the boot system starts it by the name of the partition', () => {
  assert.match(read(ROOT), `PARTNAME=${IMAGES_PARTITION.name} `)
  assert.match(read(ROOT), 'flasher-wizard.service.wants')
})

test('udev starts it for every label that is looked for, and for no other', () => {
  const rules = read(RULES)
  assert.match(rules, `ENV{ID_PART_ENTRY_NAME}=="${IMAGES_PARTITION.name}"`)
  const labels = /ENV\{ID_FS_LABEL\}=="([^"]+)"/.exec(rules)?.[1]?.split('|') ?? []
  assert.is(labels.length, 3)
  const medium = { disk: null, partition: null, hasImages: false }
  const disks = [{ node: '/dev/sdb', isFixed: false }]
  for (const label of labels) {
    const labelled = new Map([[label, '/dev/sdb']])
    const place = chooseImagesPartition({ medium, parts: [], disks, labels: labelled })
    assert.is(place?.node, '/dev/sdb', label)
  }
})

const LIVE = 'overlays/live/usr/lib/flasher/live'
const MISSING = /for StrippedTypeScript file:\S*\/runtime\/(\S+?)\.\.\. ?no such file/g

/** V8 takes code only where these are the same. */
const flags = readFileSync(join(LIVE, 'node'), 'utf8').match(/--[\w-]+(=\w+)?/g) ?? []

const compile = (cache: string) =>
  execFileSync(process.execPath, [...flags, join(LIVE, 'warm.mjs'), resolve('runtime'), cache])

test('what is compiled for an image loads with the packages of the image', () => {
  using folder = mkdtempDisposableSync(join(tmpdir(), 'flasher-warm-'))
  for (const name of ['runtime', 'appliance', 'package.json']) {
    cpSync(name, join(folder.path, name), { recursive: true })
  }
  const entries = ['live', 'grow', 'tui'].map((name) => `runtime/bin/flasher-${name}.mjs`)
  for (const name of collectImports([...entries, 'runtime/bin/flasher.mjs']).packages) {
    const place = join(folder.path, 'node_modules', name)
    mkdirSync(dirname(place), { recursive: true })
    symlinkSync(realpathSync(join('node_modules', name)), place)
  }
  const given = [join(folder.path, 'runtime'), join(folder.path, 'cache')]
  execFileSync(process.execPath, [...flags, join(LIVE, 'warm.mjs'), ...given])
})

test('up to its first screen the wizard strips no types', async () => {
  using folder = mkdtempDisposableSync(join(tmpdir(), 'flasher-warm-'))
  const cache = join(folder.path, 'cache')
  const log = join(folder.path, 'log')
  compile(cache)
  const program = [process.execPath, ...flags, resolve('runtime/bin/flasher-live.mjs')]
  const told = { NODE_COMPILE_CACHE: cache, NODE_DEBUG_NATIVE: 'COMPILE_CACHE' }
  const env = { ...told, FLASHER_IMAGE_ROOT: folder.path }
  await using terminal = await openTerminal(['sh', '-c', `${program.join(' ')} 2>${log}`], { env })
  await terminal.waitFor('[q] quit')
  const lines = readFileSync(log, 'utf8')
  assert.match(lines, /StrippedTypeScript file:\S*\/runtime\/bin\/flasher-live\.ts\.\.\. ?success/)
  assert.equal(
    [...lines.matchAll(MISSING)].map(([, path]) => path),
    [],
  )
  assert.match(lines, /runtime\/bin\/flasher-live\.ts was accepted/)
  assert.not.match(lines, /was rejected/)
})

test('two builds compile to the same bytes', () => {
  using folder = mkdtempDisposableSync(join(tmpdir(), 'flasher-warm-'))
  const [one, two] = ['one', 'two'].map((name) => join(folder.path, name))
  for (const cache of [one, two]) compile(cache ?? '')
  assert.is(execFileSync('diff', ['-r', one ?? '', two ?? ''], { encoding: 'utf8' }), '')
})

test.run()
