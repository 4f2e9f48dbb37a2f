import * as fc from 'fast-check'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { parseChallenges, findCredentials } from '#kit/net/registry/rules/docker-config.ts'
import {
  blobUrlOf,
  decideSchemes,
  manifestUrl,
  parseOrasRef,
  renderOrasRef,
} from '#kit/net/registry/rules/oras.ts'
import { parseManifestBody, registryArch } from '#kit/net/registry/rules/oras-manifest.ts'
import { parseLocation } from '#kit/net/rules/image-location.ts'

const test = suite('oras')
const D = `sha256:${'a'.repeat(64)}`
const E = `sha256:${'b'.repeat(64)}`

function parsed(text: string) {
  const ref = parseOrasRef(text)
  assert.ok(ref.ok, text)
  return ref.value
}

test('a reference names host, repository, and a tag or a digest', () => {
  assert.equal(parsed('oras://Reg.example:5000/owner/a/disk_x--y.z:V1.0_b'), {
    host: 'reg.example:5000',
    repository: 'owner/a/disk_x--y.z',
    version: { kind: 'tag', tag: 'V1.0_b' },
  })
  assert.is(parsed('oras://h/debian:13').repository, 'debian')
  assert.equal(parsed(`ORAS://h/a/b@${D}`).version, { kind: 'digest', digest: D })
  // A tag beside a digest only says where the digest once was.
  assert.equal(parsed(`oras://h/a/b:c@${D}`), parsed(`oras://h/a/b@${D}`))
})

const REFUSED: readonly (readonly [string, RegExp])[] = [
  ['https://h/a/b:c', /not an oras:\/\//],
  ['oras://', /empty/],
  ['oras://h', /malformed/],
  ['oras://h/a/b', /malformed/],
  ['oras://h/a/b:', /malformed/],
  ['oras://h/:c', /malformed/],
  ['oras://h/a/B:c', /malformed/],
  ['oras://h/a/../b:c', /malformed/],
  ['oras://h/a//b:c', /malformed/],
  ['oras://h/a/b:..', /malformed/],
  ['oras://h/a/b:c?x', /malformed/],
  ['oras://h:99999/a/b:c', /malformed/],
  ['oras://u:p@h/a/b:c', /malformed/],
  [`oras://h/a/b@${D.slice(0, -1)}`, /malformed/],
  [`oras://h/a/b@${D.toUpperCase()}`, /malformed/],
]

test('anything else is refused in words', () => {
  for (const [text, words] of REFUSED) {
    const ref = parseOrasRef(text)
    assert.not.ok(ref.ok, text)
    if (!ref.ok) assert.match(ref.refusal, words, text)
  }
})

test('any text: what is taken is written again alike, and its addresses keep their paths', () => {
  const word = fc.stringMatching(/^[a-z0-9._/:@A-Z-]{0,30}$/)
  fc.assert(
    fc.property(fc.oneof(fc.string(), word), fc.constantFrom(':t', `@${D}`, ''), (body, tail) => {
      const ref = parseOrasRef(`oras://${body}${tail}`)
      if (!ref.ok) return
      assert.equal(parsed(renderOrasRef(ref.value)), ref.value)
      const { host, repository } = ref.value
      for (const url of [manifestUrl, blobUrlOf].map((make) =>
        make(`https://${host}`, repository, D),
      )) {
        assert.is(new URL(url).pathname, url.slice(`https://${host}`.length))
      }
    }),
    { numRuns: 2000 },
  )
})

test('an image location may be a reference, in any spelling that a catalog takes', () => {
  const location = parseLocation('ORAS://GHCR.example/Safl/Nosi:Latest')
  assert.equal(location.ok && location.value, {
    kind: 'oras',
    ref: {
      host: 'ghcr.example',
      repository: 'safl/nosi',
      version: { kind: 'tag', tag: 'Latest' },
    },
  })
})

test('plain http is for listed hosts, and for this machine where it speaks no TLS', () => {
  assert.equal(decideSchemes('reg.example', ''), ['https'])
  assert.equal(decideSchemes('reg.example:5000', 'x, Reg.example:5000'), ['http'])
  assert.equal(decideSchemes('localhost:5000', ''), ['https', 'http'])
  assert.equal(decideSchemes('127.0.0.1', ''), ['https', 'http'])
  assert.equal(decideSchemes('127.0.0.1.example', ''), ['https'])
})

const layer = (
  digest: string,
  size: unknown,
  title?: string,
  mediaType = 'application/octet-stream',
) => ({
  mediaType,
  digest,
  size,
  ...(title === undefined ? {} : { annotations: { 'org.opencontainers.image.title': title } }),
})
const read = (manifest: unknown, arch: string | null = null) =>
  parseManifestBody(JSON.stringify(manifest), { arch, ownArch: 'x64' })

test('the largest layer that is no sidecar holds the image', () => {
  const layers = [
    null,
    'x',
    layer(E, 900, 'disk.img.zst.sha256'),
    layer(E, 990, undefined, 'application/vnd.dev.cosign.simplesigning.v1+json'),
    layer(E, 991, undefined, 'application/vnd.in-toto+json'),
    layer(E, 10, 'small.img.zst'),
    layer(D, 800, '../../etc/di\u202esk.img.zst'),
  ]
  assert.equal(read({ layers }), {
    ok: true,
    value: {
      kind: 'image',
      layer: { digest: D, sizeBytes: 800, title: 'disk.img.zst', indexSha256: null },
    },
  })
  const sidecars = [layer(E, 1, 'a.sig'), layer(D, 2, 'b.json')]
  const { ok } = read({ layers: sidecars })
  assert.ok(ok)
})

test('a manifest without an image says why', () => {
  const helm = 'application/vnd.cncf.helm.chart.content.v1.tar+gzip'
  const rows: readonly (readonly [unknown, RegExp])[] = [
    [{}, /no layers/],
    [{ layers: [] }, /no layers/],
    [[], /not one that we know/],
    [{ layers: 'x' }, /not one that we know/],
    [{ layers: [layer(D, 1, 'chart.tgz', helm)] }, /non-disk-image artifact/],
    [{ layers: [layer('sha512:aa', 1)] }, /no sha256 digest/],
  ]
  for (const [manifest, words] of rows) {
    const found = read(manifest)
    assert.not.ok(found.ok)
    if (!found.ok) assert.match(found.refusal, words)
  }
})

const of = (digest: string, architecture?: string) => ({
  digest,
  ...(architecture === undefined ? {} : { platform: { architecture, os: 'linux' } }),
})
const take = (digest: string) => ({ ok: true, value: { kind: 'index', digest } })

test('an index is chosen from by architecture, and attestations never are', () => {
  const both = { manifests: [of(E, 'unknown'), of(D, 'amd64'), of(E, 'arm64')] }
  assert.equal(read(both, 'x86_64'), take(D))
  assert.equal(read(both, 'aarch64'), take(E))
  assert.equal(read(both), take(D))
  assert.equal(read({ manifests: [of(E, 'arm64')] }), take(E))
  assert.equal(read({ manifests: [of(E)] }, 'arm64'), take(E))
  assert.equal(read(both, 'riscv64'), {
    ok: false,
    refusal: 'it holds no image for riscv64 (amd64, arm64)',
  })
  assert.not.ok(read({ manifests: [of(E, 'arm64')] }, 'x86_64').ok)
  assert.not.ok(read({ manifests: [] }).ok)
  assert.is(registryArch(' X86_64 '), 'amd64')
})

const on = (digest: string, os: string, variant?: string, architecture = 'amd64') => ({
  digest,
  platform: { architecture, os, ...(variant === undefined ? {} : { variant }) },
})
const several = (...digests: readonly string[]) => ({
  ok: true,
  value: { kind: 'several', arch: 'amd64', digests },
})

test('of several for one processor: Linux, then what all of them run, else all are named', () => {
  const rows = [
    [[on(E, 'windows'), on(D, 'linux')], take(D)],
    [[on(E, 'linux', 'v3'), on(D, 'linux', 'v1')], take(D)],
    [[on(E, 'linux', 'v3'), on(D, 'linux')], take(D)],
    [[on(D, 'linux', 'v2'), on(E, 'linux', 'v3')], several(D, E)],
    [[on(D, 'linux'), on(E, 'linux')], several(D, E)],
    [[on(D, 'linux'), on(D, 'linux')], take(D)],
    [[of(D), of(E)], several(D, E)],
    [[of(D), on(E, 'linux')], take(E)],
  ] as const
  for (const [manifests, found] of rows) {
    assert.equal(read({ manifests }, 'x86_64'), found, JSON.stringify(manifests))
  }
  const arms = [on(E, 'linux', 'v9', 'arm64'), on(D, 'linux', 'v8', 'arm64')]
  assert.equal(read({ manifests: arms }, 'aarch64'), take(D))
})

test('any JSON and any text is a manifest or a refusal', () => {
  const any = fc.oneof(
    fc.string(),
    fc.json(),
    fc.jsonValue().map((value) => JSON.stringify({ layers: [value, layer(D, value)] })),
    fc
      .jsonValue()
      .map((value) => JSON.stringify({ manifests: [value, { digest: D, platform: value }] })),
  )
  fc.assert(
    fc.property(any, (text) => {
      const found = parseManifestBody(text, { arch: null, ownArch: 'x64' })
      if (found.ok && found.value.kind === 'image') assert.is(found.value.layer.digest, D)
      if (!found.ok) assert.ok(found.refusal.length < 1000)
    }),
  )
})

const plain = (header: string) =>
  parseChallenges(header).map(({ scheme, params }) => [scheme, Object.fromEntries(params)])

test('challenges with quotes, commas, several schemes and blanks', () => {
  assert.equal(
    plain('Bearer realm="https://a.test/t?x=1,2",service="s \\"q\\"", scope="a:b:pull,push"'),
    [['bearer', { realm: 'https://a.test/t?x=1,2', service: 's "q"', scope: 'a:b:pull,push' }]],
  )
  assert.equal(plain(' Negotiate, Basic  realm = lab , BEARER realm=x,realm=y'), [
    ['negotiate', {}],
    ['basic', { realm: 'lab' }],
    ['bearer', { realm: 'x' }],
  ])
  assert.equal(plain(''), [])
  assert.equal(plain('"x'), [])
})

test('any header is read to an end, and quoted values come out as they went in', () => {
  fc.assert(fc.property(fc.string({ maxLength: 300 }), (header) => void parseChallenges(header)))
  fc.assert(
    fc.property(
      fc.string({ maxLength: 60 }).filter((text) => !/[\r\n]/.test(text)),
      (value) => {
        const header = `Bearer realm="${value.replaceAll(/["\\]/g, '\\$&')}"`
        assert.equal(plain(header), [['bearer', { realm: value }]])
      },
    ),
  )
})

test("credentials come from Docker's configuration, for their own host alone", () => {
  const auth = Buffer.from('me:pa:ss').toString('base64')
  const config = JSON.stringify({
    auths: {
      'https://Reg.example/v1/': { auth },
      'other:5000': { username: 'you', password: 'x' },
      empty: {},
      bad: { auth: '%%%' },
    },
  })
  assert.equal(findCredentials(config, 'reg.example'), { user: 'me', password: 'pa:ss' })
  assert.equal(findCredentials(config, 'other:5000'), { user: 'you', password: 'x' })
  for (const host of ['other', 'empty', 'bad', 'absent']) {
    assert.is(findCredentials(config, host), null)
  }
  fc.assert(
    fc.property(fc.oneof(fc.string(), fc.json()), (text) => {
      assert.is(findCredentials(text, 'reg.example'), null)
    }),
  )
})

test.run()
