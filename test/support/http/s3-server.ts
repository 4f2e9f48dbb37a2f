/** A small S3 server on loopback: keeps objects in memory, lists them in pages, and wants signed requests. */
import { buffer } from 'node:stream/consumers'
import { startHostileServer } from './hostile-server.ts'

const PAGE = 5
const SIGNED = /^AWS4-HMAC-SHA256 Credential=lab\/\d{8}\/us-east-1\/s3\/aws4_request, /

export async function startS3(bucket: string) {
  const objects = new Map<string, Buffer>()

  function list(after: string): string {
    const keys = [...objects.keys()].filter((key) => key > after).toSorted()
    const page = keys.slice(0, PAGE)
    const contents = page.map((key) => `<Contents><Key>${key}</Key></Contents>`).join('')
    const more = keys.length > PAGE
    const next = more ? `<NextContinuationToken>${page.at(-1)}</NextContinuationToken>` : ''
    return `<?xml version="1.0"?><ListBucketResult><IsTruncated>${more}</IsTruncated>${contents}${next}</ListBucketResult>`
  }

  const server = await startHostileServer(async (request, response) => {
    const url = new URL(request.url ?? '/', 'http://s3')
    const key = url.pathname.slice(`/${bucket}/`.length)
    const body = await buffer(request)
    const isSigned = SIGNED.test(request.headers.authorization ?? '')
    if (!isSigned || !`${url.pathname}/`.startsWith(`/${bucket}/`)) {
      response.writeHead(403).end('<Error><Message>Access Denied</Message></Error>')
    } else if (key === '') response.end(list(url.searchParams.get('continuation-token') ?? ''))
    else if (request.method === 'PUT') {
      objects.set(key, body)
      response.end()
    } else if (request.method === 'DELETE') {
      objects.delete(key)
      response.writeHead(204).end()
    } else {
      const found = objects.get(key)
      response.writeHead(found === undefined ? 404 : 200).end(found)
    }
  })

  return {
    objects,
    options: {
      endpoint: server.origin,
      bucket,
      region: 'us-east-1',
      accessKeyId: 'lab',
      secretAccessKey: 'secret',
    },
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  }
}
