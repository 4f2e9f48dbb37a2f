/** The folder of a release: what is in it, the same bytes each time, and as other programs check it. */
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { RELEASE_LINES, RELEASES } from '#appliance/release.ts'
import { collectAssets } from '#build/release/collect.ts'
import { renderManifest } from '#build/release/manifest.ts'
import { parseRelease } from '#fleet/boot/rules/release.ts'
import { makeReleaseFolder, makeSigningKey } from '#test/support/release-folder.ts'

const test = suite('the folder of a release')

/** "Release artifacts" of both specifications, without what other projects publish. */
const SPECIFIED = {
  current: [
    'flasher-ipxe-x86_64-v1.2.3.efi',
    'flasher-netboot-pc-x86_64-v1.2.3.initrd',
    'flasher-netboot-pc-x86_64-v1.2.3.sha256',
    'flasher-netboot-pc-x86_64-v1.2.3.squashfs',
    'flasher-netboot-pc-x86_64-v1.2.3.vmlinuz',
    'flasher-usbboot-pc-x86_64-v1.2.3.iso',
    'flasher-usbboot-pc-x86_64-v1.2.3.iso.sha256',
    'flasher-usbboot-rpi-arm64-v1.2.3.img.gz',
    'flasher-usbboot-rpi-arm64-v1.2.3.img.gz.sha256',
    'flasher_lab-1.2.3.tar.gz',
    'release.toml',
  ],
  earlier: [
    'flasher-live-x86_64.initrd',
    'flasher-live-x86_64.sha256',
    'flasher-live-x86_64.squashfs',
    'flasher-live-x86_64.vmlinuz',
    'flasher-server-rpi-arm64.img.zst',
    'flasher-server-rpi-arm64.img.zst.sha256',
    'flasher-server-x86_64.img.zst',
    'flasher-server-x86_64.img.zst.sha256',
    'flasher-usb-x86_64.img.zst',
    'flasher-usb-x86_64.img.zst.sha256',
    'flasher_lab-1.2.3.tar.gz',
  ],
} as const

for (const line of RELEASE_LINES) {
  test(`${line}: the specified names, described and summed`, async () => {
    await using release = await makeReleaseFolder({ line })
    const names = await readdir(release.path)
    for (const name of SPECIFIED[line]) assert.ok(names.includes(name), name)
    assert.equal(
      release.files.map(({ name }) => name),
      names.toSorted(),
    )
    const sums = names.filter((name) => name.endsWith('.sha256'))
    for (const list of [...sums, 'SHA256SUMS']) {
      execFileSync('sha256sum', ['--check', '--strict', '--quiet', list], { cwd: release.path })
    }
    const summed = execFileSync('wc', ['-l', 'SHA256SUMS'], { cwd: release.path, encoding: 'utf8' })
    assert.is(Number.parseInt(summed, 10), names.length - 1)
  })

  test(`${line}: the manifest is what servers read`, async () => {
    await using release = await makeReleaseFolder({ line, tag: 'v1.2.3-one' })
    const manifest = parseRelease((await release.read('release.toml')).toString())
    assert.ok(manifest.ok)
    if (!manifest.ok) return
    const { version, tag, artifacts } = manifest.value
    assert.equal([version, tag], ['1.2.3', 'v1.2.3-one'])
    assert.equal(
      artifacts.map(({ name }) => name),
      RELEASES[line]('1.2.3').flatMap(({ files }) => files),
    )
    for (const { name, sizeBytes, sha256 } of artifacts) {
      const file = release.files.find((one) => one.name === name)
      assert.equal([file?.bytes, file?.digest], [sizeBytes, sha256])
    }
  })

  test(`${line}: the same files make the same folder, the signature excepted`, async () => {
    await using one = await makeReleaseFolder({ line })
    await using two = await makeReleaseFolder({ line })
    assert.equal(one.files, two.files)
  })
}

test('Raspberry Pi Imager gets every medium with what it decodes to, and .xz instead of .zst', async () => {
  for (const line of RELEASE_LINES) {
    await using release = await makeReleaseFolder({ line, url: 'https://ex.com/a/b/v1.2.3' })
    const { os_list: list } = JSON.parse((await release.read('imager.json')).toString())
    const names = list.map(({ url }: { url: string }) => url.split('/').at(-1))
    const servers = ['flasher-server-x86_64.img.xz', 'flasher-server-rpi-arm64.img.xz']
    const own = {
      current: [
        'flasher-usbboot-pc-x86_64-v1.2.3.iso',
        'flasher-usbboot-rpi-arm64-v1.2.3.img.gz',
        ...servers,
      ],
      earlier: ['flasher-usb-x86_64.img.xz', ...servers],
    }
    assert.equal(names, own[line])
    for (const [at, name] of names.entries()) {
      const { url, extract_size, extract_sha256, image_download_size, devices } = list[at]
      // None of them reads what the Imager would ask its person for.
      assert.is(list[at].init_format, 'none')
      assert.is(url, `https://ex.com/a/b/v1.2.3/${name}`)
      const bytes = await release.read(name)
      const tool = { xz: 'xz', gz: 'gzip', iso: 'cat' }[String(name.split('.').at(-1))] ?? ''
      const raw = execFileSync(tool, tool === 'cat' ? [] : ['-dc'], { input: bytes })
      assert.equal(
        [extract_size, extract_sha256, image_download_size, devices[0]],
        [raw.length, createHash('sha256').update(raw).digest('hex'), bytes.length, 'any'],
      )
      execFileSync('sha256sum', ['--check', '--quiet', `${name}.sha256`], { cwd: release.path })
    }
  }
  await using unknown = await makeReleaseFolder({ line: 'current' })
  assert.not.ok(unknown.files.some(({ name }) => name === 'imager.json'))
})

test('a medium that cannot be decoded makes no release', async () => {
  const made = makeReleaseFolder({ line: 'earlier', damage: 'flasher-usb-x86_64.img.zst' })
  const message = await made.then(String, String)
  assert.match(message, /flasher-usb-x86_64\.img\.zst cannot be decoded/)
})

test('ssh-keygen verifies what was signed, and nothing that was changed', async () => {
  await using key = await makeSigningKey()
  await using release = await makeReleaseFolder({ line: 'current', key: key.path })
  const signers = join(release.path, 'allowed_signers')
  await writeFile(signers, `flasher namespaces="flasher-release" ${key.publicKey}\n`)
  const verify = (name: string, input: Buffer) =>
    execFileSync(
      'ssh-keygen',
      [
        '-Y',
        'verify',
        '-f',
        signers,
        '-I',
        'flasher',
        '-n',
        'flasher-release',
        '-s',
        `${name}.sig`,
      ],
      { cwd: release.path, input, encoding: 'utf8', stdio: ['pipe', 'pipe', 'pipe'] },
    )
  for (const name of ['release.toml', 'SHA256SUMS']) {
    const text = await readFile(join(release.path, name))
    assert.match(verify(name, text), 'Good "flasher-release" signature for flasher')
    assert.throws(() => verify(name, Buffer.concat([text, Buffer.from('\n')])))
  }
})

test('what was not built is named, and what nobody has to build is not', () => {
  const nothing = collectAssets('current', '1.2.3', new Set())
  assert.equal(nothing.groups, [])
  assert.ok(nothing.missing.includes('flasher-usbboot-rpi-arm64-v1.2.3.img.gz'))
  assert.not.ok(nothing.missing.includes('flasher-server-x86_64.img.zst'))
  const pdf = 'flasher-docs-v1.2.3'
  const built = new Set([`${pdf}.pdf`, `${pdf}.cdx.json`, `${pdf}.packages.txt`])
  const some = collectAssets('earlier', '1.2.3', built)
  assert.equal(
    some.groups.map(({ files }) => files),
    [[`${pdf}.pdf`]],
  )
  assert.not.ok(some.missing.some((name) => built.has(name)))
  built.delete(`${pdf}.cdx.json`)
  assert.equal(collectAssets('earlier', '1.2.3', built).groups, [])
})

test('an unknown word in the template is refused', () => {
  const facts = { line: 'current', version: '1', tag: 'v1', epoch: 1, files: [] } as const
  assert.throws(() => renderManifest('x = "@ersion@"', facts), '@ersion@')
})

test.run()
