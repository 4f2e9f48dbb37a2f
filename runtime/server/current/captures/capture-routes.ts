/** `/machines/{mac}/capture`: orders an image of a disk of the machine, or cancels the order. */
import { act } from '#server/routes/bulk.ts'
import type { Site } from '#server/routes/site.ts'
import { checked, renderSchema } from '#kit/web/answers/checked.ts'
import type { Route } from '#kit/web/answers/route.ts'
import { CaptureFieldsSchema } from '../rules/action.ts'
import type { Machine } from '../rules/machine.ts'

export function captureRoutes(site: Site<Machine>): readonly Route[] {
  const answers = { 200: 'Machine' }
  return [
    {
      method: 'POST',
      path: '/machines/:mac/capture',
      access: 'flash',
      takes: 'json',
      doc: {
        summary: 'Captures a disk of the machine at its next network boot',
        body: renderSchema(CaptureFieldsSchema, 'input'),
        answers,
        refuses: [409],
      },
      handle: (event, body) => act(site, event, 'capture', checked(CaptureFieldsSchema, body)),
    },
    {
      method: 'DELETE',
      path: '/machines/:mac/capture',
      access: 'flash',
      doc: { summary: 'Cancels an ordered capture', answers, refuses: [409] },
      handle: (event) => act(site, event, 'cancel-capture', {}),
    },
  ]
}
