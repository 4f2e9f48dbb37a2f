/** Generates the API document (OpenAPI 3.1) from the route table and the validating schemas. */
import * as z from 'zod'
import { renderDocument } from '#kit/web/ui/site-views.ts'
import { page, json } from '#kit/web/answers/answers.ts'
import { renderSchema } from '#kit/web/answers/checked.ts'
import type { Site } from './site.ts'
import {
  listRefusals,
  meaningOf,
  type Access,
  type Route,
  type RouteDoc,
  type SchemaRef,
} from '#kit/web/answers/route.ts'
import { readTheme } from '#kit/web/ui/layout.ts'

type Json = Readonly<Record<string, unknown>>

const templateOf = (path: string) => path.replaceAll(/:([a-z_]+)/gi, '{$1}')

const ERROR = z.object({
  detail: z.union([
    z.string(),
    z.array(
      z.object({
        loc: z.array(z.union([z.string(), z.int()])),
        msg: z.string(),
        type: z.string(),
      }),
    ),
  ]),
})

/** Only routes with a `doc`: pages are for people. */
function renderOpenApi(
  site: Site,
  schemas: Readonly<Record<string, Json>>,
  routes: readonly Route[],
): Json {
  const paths: Record<string, Record<string, Json>> = {}
  for (const route of routes) {
    if (route.doc === undefined) continue
    const path = templateOf(route.path)
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: renderRoute(route, route.doc) }
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'flasher-web',
      version: site.version,
      description: 'The machine server. Errors are `{"detail": …}`.',
    },
    // Relative to this document where no address is configured.
    servers: [{ url: site.settings().publicUrl ?? '/' }],
    paths,
    components: {
      schemas: {
        ...schemas,
        Error: renderSchema(ERROR, 'input'),
      },
      securitySchemes: {
        session: { type: 'apiKey', in: 'cookie', name: 'flasher-token' },
        token: { type: 'http', scheme: 'bearer', description: 'An API token with the scope named' },
      },
    },
  }
}

export function documentRoutes(
  site: Site,
  schemas: Readonly<Record<string, Json>>,
  routes: () => readonly Route[],
): readonly Route[] {
  const { views, version } = site
  return [
    {
      method: 'GET',
      path: '/openapi.json',
      access: 'open',
      isCompressed: true,
      doc: { summary: 'This document', answers: { 200: { type: 'object' } } },
      handle: () => json(renderOpenApi(site, schemas, routes())),
    },
    {
      method: 'GET',
      path: '/docs/api',
      access: 'open',
      isCompressed: true,
      handle: (event) =>
        page(
          views.renderDocument({
            title: 'API',
            body: renderDocument(version, routes()),
            theme: readTheme(event),
            here: '/docs/api',
          }),
          200,
          { vary: 'cookie' },
        ),
    },
  ]
}

function renderRoute(route: Route, doc: RouteDoc): Json {
  const access: Access = typeof route.access === 'function' ? route.access() : route.access
  return {
    summary: doc.summary,
    operationId: operationIdOf(route),
    security: access === 'open' ? [] : [{ session: [] }, { token: [access] }],
    parameters: [...pathParameters(route.path), ...queryParameters(doc)],
    ...(doc.body === undefined
      ? {}
      : { requestBody: { required: true, content: contentOf(doc.body) } }),
    responses: {
      ...Object.fromEntries(
        Object.entries(doc.answers ?? {}).map(([status, schema]) => [
          status,
          renderAnswer(status, schema),
        ]),
      ),
      ...Object.fromEntries(
        listRefusals(route, access).map((status) => [
          status,
          renderRefusal(route, meaningOf(status)),
        ]),
      ),
      default: renderRefusal(route, 'The server failed'),
    },
  }
}

function renderAnswer(status: string, schema: SchemaRef | null): Json {
  if (schema === null) return { description: status === '204' ? 'Done' : 'OK' }
  return { description: 'OK', content: contentOf(schema) }
}

/** Below /ui a page says it, whoever asks. */
const renderRefusal = ({ path }: Route, description: string): Json => ({
  description,
  content: path.startsWith('/ui/')
    ? { 'text/html': { schema: { type: 'string' } } }
    : { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } },
})

const contentOf = (schema: SchemaRef): Json => ({
  [mediaTypeOf(schema)]: { schema: refer(schema) },
})

function mediaTypeOf(schema: SchemaRef): string {
  const type = typeof schema === 'string' ? undefined : schema['contentMediaType']
  return typeof type === 'string' ? type : 'application/json'
}

const refer = (schema: SchemaRef): Json =>
  typeof schema === 'string' ? { $ref: `#/components/schemas/${schema}` } : schema

const pathParameters = (path: string) =>
  [...path.matchAll(/:([a-z_]+)/gi)].map(([, name]) => ({
    name,
    in: 'path',
    required: true,
    schema: { type: 'string' },
  }))

const queryParameters = ({ query = {} }: RouteDoc) =>
  Object.entries(query).map(([name, description]) => ({
    name,
    in: 'query',
    description,
    schema: { type: 'string' },
  }))

const operationIdOf = ({ method, path }: Route) =>
  `${method.toLowerCase()}${path
    .split(/[^a-z0-9]+/i)
    .filter(Boolean)
    .map((part) => part.charAt(0).toUpperCase() + part.slice(1))
    .join('')}`
