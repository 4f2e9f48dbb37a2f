/** The apt repository of a release: a Debian is made from it, and upgraded from the package of the former name. */
import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { $ } from 'zx'
import { CONFIGURATION_FILES, SERVER_SCRIPTS } from '#build/debian/package-control.ts'
import { packAptTree, writeAptTree } from '#build/release/apt.ts'
import { readCodename, readSources } from '#test/support/disk/debian-tree.ts'
import { serveFolder } from '#test/support/http/folder-server.ts'
import { makeOpenpgpKey } from '#test/support/system/openpgp-key.ts'
import { findBuildObstacle, openDebs } from '#test/support/vm/built-images.ts'

const test = suite('apt repository')
const obstacle = findBuildObstacle()
if (obstacle !== null) console.log(`skipped: ${obstacle}`)
const run = obstacle === null ? test : test.skip
const EPOCH = 1_700_000_000
const quiet = $({ quiet: true, verbose: false })

/** apt reads keys as a user of its own. */
async function makeFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'flasher-apt-'))
  await chmod(folder, 0o755)
  return folder
}

/** One package that has everything, as it was before it was divided; the version is older than any. */
async function makeFormer(folder: string, debs: readonly string[]): Promise<string> {
  const root = join(folder, 'former')
  await mkdir(join(root, 'DEBIAN'), { recursive: true })
  for (const deb of debs) await quiet`dpkg-deb --extract ${deb} ${root}`
  const control = `Package: flasher-lab\nVersion: 0.0.1\nArchitecture: amd64\nMaintainer: test <test@localhost>\nDepends: libatomic1, libc6, libstdc++6, passwd\nDescription: all of it\n`
  await writeFile(join(root, 'DEBIAN/control'), control)
  await writeFile(join(root, 'DEBIAN/conffiles'), `${CONFIGURATION_FILES.join('\n')}\n`)
  for (const [name, script] of Object.entries(SERVER_SCRIPTS))
    await writeFile(join(root, 'DEBIAN', name), script, { mode: 0o755 })
  const path = join(folder, 'flasher-lab_0.0.1_amd64.deb')
  await quiet`dpkg-deb -Zzstd -z1 --root-owner-group --build ${root} ${path}`
  return path
}

run('a system is made from it, and one with the former package is upgraded', async () => {
  const debs = await openDebs()
  const folder = await makeFolder()
  try {
    const [key, tree, root] = [
      await makeOpenpgpKey(folder),
      join(folder, 'apt'),
      join(folder, 'root'),
    ]
    using web = await serveFolder(tree)
    const rest = { to: tree, epoch: EPOCH, key }
    await writeAptTree({ ...rest, debs: [await makeFormer(folder, [debs.programs, debs.server])] })
    const codename = await readCodename()
    const line = `deb [signed-by=${join(tree, 'flasher.asc')}] ${web.url} stable main\n`
    const input = `${await readSources(codename)}${line}`
    const options = ['--mode=root', '--variant=apt', '--quiet', '--include=flasher-lab,systemd']
    const hook = '--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr'
    await $({
      quiet: true,
      verbose: false,
      input,
    })`mmdebstrap ${options} ${hook} ${codename} ${root} -`
    const within = async (...words: readonly string[]) =>
      (await quiet`chroot ${root} ${words}`).stdout.trim()
    const installed = (name: string) =>
      within(
        'sh',
        '-c',
        `dpkg-query --show --showformat '\${Version} \${db:Status-Abbrev}' ${name}`,
      )
    assert.is(await installed('flasher-lab'), '0.0.1 ii')

    // The administrator has changed the configuration and wants no cache.
    const env = join(root, 'etc/flasher/flasher.env')
    await writeFile(env, `${await readFile(env, 'utf8')}FLASHER_LOG_LEVEL=warn\n`)
    await within('systemctl', 'disable', 'flasher-cache.service')
    await within('mkdir', '-p', '/var/lib/flasher')
    await writeFile(join(root, 'var/lib/flasher/state.db'), 'kept')

    await writeAptTree({ ...rest, debs: [debs.programs, debs.server, debs.former] })
    await mkdir(join(root, 'keys'))
    await writeFile(join(root, 'keys/flasher.asc'), await readFile(join(tree, 'flasher.asc')))
    await rm(join(root, 'etc/apt/sources.list.d'), { recursive: true, force: true })
    const sources = `${await readSources(codename)}deb [signed-by=/keys/flasher.asc] ${web.url} stable main\n`
    await writeFile(join(root, 'etc/apt/sources.list'), sources)
    await within('apt-get', 'update', '-q')
    await within('env', 'DEBIAN_FRONTEND=noninteractive', 'apt-get', '-qy', 'dist-upgrade')
    for (const name of ['flasher', 'flasher-server', 'flasher-lab'])
      assert.is(await installed(name), `${debs.version} ii`, name)
    assert.match(await within('flasher', '--version'), debs.version)
    assert.match(await readFile(env, 'utf8'), 'FLASHER_LOG_LEVEL=warn')
    const wanted = await within('ls', '/etc/systemd/system/multi-user.target.wants')
    assert.ok(wanted.includes('flasher-web.service'), wanted)
    assert.not.ok(wanted.includes('flasher-cache.service'), wanted)

    // The package of the former name goes without taking anything along.
    await within('dpkg', '--purge', 'flasher-lab')
    assert.is(await readFile(join(root, 'var/lib/flasher/state.db'), 'utf8'), 'kept')
    assert.match(await within('flasher-web', '--version'), debs.version)
    await within('dpkg', '--purge', 'flasher-server')
    assert.match(await within('flasher', '--version'), debs.version)
    assert.is(await within('sh', '-c', 'ls -d /var/lib/flasher /etc/flasher 2>/dev/null || :'), '')
  } finally {
    await rm(folder, { recursive: true })
  }
})

run(
  'the same packages make the same repository but for signatures, and a changed one is refused',
  async () => {
    const debs = await openDebs()
    const folder = await mkdtemp(join(tmpdir(), 'flasher-apt-'))
    try {
      const key = await makeOpenpgpKey(folder)
      const trees = [join(folder, 'a'), join(folder, 'b')]
      for (const to of trees)
        await writeAptTree({ debs: [debs.server, debs.former], to, epoch: EPOCH, key })
      const [one = '', two = ''] = trees
      await quiet`diff --recursive --exclude=InRelease --exclude=Release.gpg ${one} ${two}`
      const release = await readFile(join(one, 'dists/stable/Release'), 'utf8')
      assert.match(release, /^Date: \w{3}, 14 Nov 2023 22:13:20 \+0000\nAcquire-By-Hash: yes\n/)
      assert.not.match(release, 'Valid-Until')
      await quiet`gpgv --keyring ${await dearmor(folder, one)} ${join(one, 'dists/stable/InRelease')}`
      const archive = join(folder, 'apt.tar')
      await packAptTree(one, archive, EPOCH)
      assert.match((await quiet`tar --list --file ${archive}`).stdout, './dists/stable/InRelease')

      using web = await serveFolder(two)
      const index = join(two, 'dists/stable/main/binary-amd64/Packages')
      const text = await readFile(index, 'utf8')
      const found = /^SHA256: ([0-9a-f]+)$/m.exec(text)?.[1] ?? ''
      const file = /^Filename: (.*)$/m.exec(text)?.[1] ?? ''
      await writeFile(join(two, file), 'something else')
      const state = join(folder, 'state')
      await mkdir(join(state, 'lists/partial'), { recursive: true })
      await mkdir(join(state, 'cache/archives/partial'), { recursive: true })
      await writeFile(
        join(folder, 'sources.list'),
        `deb [signed-by=${two}/flasher.asc] ${web.url} stable main\n`,
      )
      const own = Object.entries({
        'Dir::State': state,
        'Dir::Cache': join(state, 'cache'),
        'Dir::Etc::SourceList': join(folder, 'sources.list'),
        'Dir::Etc': join(folder, 'etc'),
        'APT::Sandbox::User': 'root',
      }).flatMap(([name, value]) => ['-o', `${name}=${value}`])
      await quiet`apt-get ${own} update -q`
      const name = file.includes('server') ? 'flasher-server' : 'flasher-lab'
      const fetched = await $({
        quiet: true,
        verbose: false,
        nothrow: true,
        cwd: folder,
      })`apt-get ${own} download ${name}`
      assert.is.not(fetched.exitCode, 0)
      assert.match(`${fetched.stdout}${fetched.stderr}`, /Hash Sum mismatch|unexpected size/)
      assert.is(found.length, 64)
    } finally {
      await rm(folder, { recursive: true })
    }
  },
)

/** gpgv reads binary keyrings alone. */
async function dearmor(folder: string, tree: string): Promise<string> {
  const path = join(folder, 'keyring.gpg')
  await quiet`gpg --batch --yes --dearmor --output ${path} ${join(tree, 'flasher.asc')}`
  return path
}

test.run()
