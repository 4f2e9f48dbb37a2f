/** Earlier line: the workflow runs of a machine, and the log of each. */
import { getRouterParam, type H3Event } from 'h3'
import { isRunId } from '#fleet/workflow/rules/online-workflow.ts'
import { json, text } from '#kit/web/answers/answers.ts'
import { readMac } from '#kit/web/answers/checked.ts'
import { refuse } from '#kit/web/answers/faults.ts'
import type { Site } from '#server/routes/site.ts'
import type { Route } from '#kit/web/answers/route.ts'
import type { Workflows } from '../assembly/workflows.ts'
import type { Machine } from '../rules/machine.ts'

const MAX_LOG_TAIL = 256 * 1024

const TEXT = { type: 'string', contentMediaType: 'text/plain' }

export function workflowRoutes(
  { machines }: Site<Machine>,
  { runs, folders }: Workflows,
): readonly Route[] {
  return [
    {
      method: 'GET',
      path: '/machines/:mac/workflows',
      access: 'read',
      doc: {
        summary: 'The workflow runs of a machine, newest first',
        answers: { 200: { type: 'array', items: { type: 'object' } } },
      },
      handle(event) {
        const mac = readMac(event)
        if (machines.peek(mac) === null) throw refuse(404, `no machine record for ${mac}`)
        return json(runs.list(mac))
      },
    },
    {
      method: 'GET',
      path: '/machines/:mac/workflows/:run/log',
      // Output of workflows may be secret, so `read` is not enough.
      access: 'machines',
      doc: { summary: 'The end of the log of a workflow run', answers: { 200: TEXT } },
      async handle(event) {
        const log = await folders.readTail(readMac(event), readRun(event), MAX_LOG_TAIL)
        if (log === null) throw refuse(404, 'this run has no log')
        return text(log, { 'cache-control': 'no-store' })
      },
    },
  ]
}

/** Throws a 404 for anything else, because the id becomes a part of a path. */
export function readRun(event: H3Event): string {
  const run = getRouterParam(event, 'run', { decode: true }) ?? ''
  if (!isRunId(run)) throw refuse(404, 'no such workflow run')
  return run
}
