/** Batches: what was done to many machines at once, how far it is, and what can be done to all of them. */

const machines = (what: string) => ({ one: `{count} ${what}`, other: `{count} ${what}` })

export const BATCHES = {
  title: 'Batches',
  all: 'All batches',
  open: 'Batches in progress',
  none: {
    title: 'No batches',
    text: 'An action on several machines is listed here, with how far each of them is.',
    link: 'Select machines',
  },
  power: {
    title: 'Power, machine by machine',
    row: {
      one: '{action}: {left} of {count} machine to go, begun by {actor}',
      other: '{action}: {left} of {count} machines to go, begun by {actor}',
    },
    stop: 'Stop',
    over: 'This has ended already.',
  },
  missing: 'There is no such batch. The newest ones are kept.',
  /** `{what}`: an image, or an action; `{target}`: a label or a search. */
  name: '{what} to {target}',
  /** For an action that writes no image: the action, and a label or a search. */
  nameOfAction: '{what}: {target}',
  machines: { one: '{count} machine', other: '{count} machines' },
  paused: 'Paused',
  pausedText:
    'Machines that wait boot their own disks until the batch goes on. Those that are being flashed go on.',
  states: {
    failed: machines('failed'),
    running: machines('in progress'),
    paused: machines('paused'),
    waiting: machines('not booted yet'),
    disarmed: machines('disarmed'),
    replaced: machines('given another order'),
    refused: machines('skipped'),
    done: machines('done'),
  },
  groups: {
    failed: 'Failed',
    running: 'In progress',
    paused: 'Paused',
    waiting: 'Not booted yet',
    disarmed: 'Disarmed',
    replaced: 'Given another order since',
    refused: 'Skipped',
    done: 'Done',
  },
  more: 'and {count} more',
  /** `{acted}`: what was done to how many machines; `{what}`: the image and what the machines have in common. */
  orderedOf: '{acted}: {what}',
  orderedSkipped: '{ordered} ({count} skipped)',
  imageOfEach: 'the image of each',
  ordered: 'Ordered {time} by {actor}',
  actions: {
    retry: 'Retry failed ({count})',
    disarm: 'Disarm the rest ({count})',
    undo: 'Undo ({count})',
    pause: 'Pause',
    resume: 'Resume',
  },
  questions: {
    retry: {
      title: { one: 'Flash {count} machine again?', other: 'Flash {count} machines again?' },
      button: 'Retry failed',
    },
    resume: {
      title: { one: 'Resume with {count} machine?', other: 'Resume with {count} machines?' },
      button: 'Resume',
    },
    /** `{strong}` to `{end}` is emphasized. */
    erased: {
      one: '{strong}{count} disk will be erased and flashed{end} at the next network boot of this machine.',
      other:
        '{strong}{count} disks will be erased and flashed{end} at the next network boot of these machines.',
    },
  },
  acted: {
    retry: { one: '{count} machine armed again.', other: '{count} machines armed again.' },
    disarm: { one: '{count} machine disarmed.', other: '{count} machines disarmed.' },
    undo: {
      one: '{count} machine is as it was, disarmed.',
      other: '{count} machines are as they were, disarmed.',
    },
    pause: { one: 'Paused: {count} machine waits.', other: 'Paused: {count} machines wait.' },
    resume: { one: 'Resumed: {count} machine goes on.', other: 'Resumed: {count} machines go on.' },
  },
} as const
