/** The machines: list, search, shortcuts, actions on many at once. */

const machines = (what: string) => ({
  one: `${what} {count} machine`,
  other: `${what} {count} machines`,
})

/** `menu` and `title` name an action, `before` is its preview, `after` its result. */
const action = (menu: string, before: string, after = before) => ({
  menu,
  title: menu.replace('…', ''),
  before: machines(before),
  after: machines(after),
})

export const MACHINES = {
  list: {
    caption: 'Machines',
    selectPage: 'Select all on this page',
    countFound: '{found} of {all}',
    /** A script counts. */
    arrived: { one: '{count} more machine', other: '{count} more machines' },
    table: 'Table',
    wall: 'Wall',
    wallHint: 'Select machines with a click or Space; Enter or a double click opens one.',
    wallWhole: 'Whole screen',
    wallPart: 'Show the navigation',
    addSummary: 'Add a machine by its MAC address',
    add: 'Add machine',
    macAddress: 'MAC address',
    notMac: '"{text}" is not a MAC address (six pairs of hexadecimal digits).',
    notAdded: 'The machine could not be added.',
    deleted: '{mac} was deleted. It reappears as discovered when it next boots from the network.',
    missing: '{mac} no longer exists.',
    queue: '{flashing} of at most {most} machines flashing, none waiting.',
    /** `{link}` to `{end}` leads to the waiting machines. */
    queueWaiting: '{flashing} of at most {most} machines flashing, {link}{waiting} waiting{end}.',
    outside: {
      title: 'No machine is in your scope',
      text: 'You see {what}. An administrator of this server gives machines their labels.',
    },
    none: {
      title: 'No machines yet',
      text: 'Boot one from the network and it appears here. Your DHCP server must point machines to {address}.',
      link: 'Set up DHCP',
    },
    noneFound: {
      title: 'No matching machines',
      text: 'Remove a term or clear the search.',
      link: 'Show all machines',
    },
  },
  labels: {
    title: 'Labels to print',
    link: 'Print labels',
    hint: 'Print this page on A4, without margins and at 100 %: 24 labels of 70 by 37 mm on a sheet.',
    shown: { one: 'This page has 1 label.', other: 'This page has {count} labels.' },
    code: 'The code of the page of {name}',
    serial: 'S/N {serial}',
    none: { title: 'No matching machines', text: 'Remove a term or clear the search.' },
  },
  wall: {
    noRack: 'No rack',
    free: 'Free slot',
    inSlot: '{name}, slot {slot}',
    tile: '{name}: {state}',
    tooMany: 'The first {most} of {found} machines. Search for fewer.',
  },
  search: {
    label: 'Search machines',
    placeholder: 'rack-1  mode:flash-once  -state:done  seen:<1h',
    filters: {
      all: 'All',
      needsAttention: 'Needs attention',
      discovered: 'Discovered',
      failed: 'Failed',
      armed: 'Armed',
      captureOrdered: 'Capture ordered',
      running: 'Running',
      done: 'Done',
      drifted: 'Drifted',
      seenThisHour: 'Seen this hour',
    },
    mistakes: {
      filter: '{term} is not a filter. The filters are {filters}.',
      filterMeant: '{term} is not a filter. Did you mean {suggestion}?',
      value: '{term} finds nothing: the filter has no such value.',
      valueMeant: '{term} finds nothing. Did you mean {suggestion}?',
      time: '{term} is not a time. Examples: {examples}.',
    },
    saved: {
      title: 'Saved searches',
      none: 'No saved searches in this browser.',
      hint: 'Search for something to save it here.',
      name: 'Save this search as',
      save: 'Save',
      remove: 'Remove',
      removeOne: 'Remove {name}',
    },
    refusals: {
      noName: 'Give the search a name.',
      noSearch: 'Search for something first, then save the search.',
      tooLong: 'A saved search has at most {query} characters, its name {name}.',
      tooMany: 'This browser cannot keep more searches. Remove one first.',
    },
    columns: {
      title: 'Columns',
      legend: 'Columns of the table',
      show: 'Show these',
      reset: 'Reset',
      hint: 'This browser remembers them.',
    },
  },
  bulk: {
    selected: 'Selected machines',
    /** A script counts. */
    countSelected: '{count} selected',
    allMatching: 'all {count} matching',
    action: 'Actions',
    erasing: 'Erases disks',
    deleting: 'Removes machines',
    preview: 'Preview',
    clear: 'Clear',
    unknownAction: 'no such action',
    noAction: 'Choose an action.',
    actions: {
      flash: action('Arm…', 'Arm', 'Armed'),
      disarm: action('Disarm', 'Disarm', 'Disarmed'),
      image: action('Assign image…', 'Assign the image to', 'Assigned the image to'),
      mode: action('Set network boot…', 'Set the network boot of'),
      'first-boot': action('Set first-boot template…', 'Set the first-boot template of'),
      label: action('Label…', 'Label', 'Labelled'),
      name: action('Names and labels', 'Change the names and labels of'),
      capture: action('Capture…', 'Capture', 'Ordered the capture of'),
      refresh: action(
        'Refresh inventory',
        'Refresh the inventory of',
        'Requested the inventory of',
      ),
      power: action('Power…', 'Ask the power of', 'Asked the power of'),
      lock: action('Lock', 'Lock', 'Locked'),
      unlock: action('Unlock', 'Unlock', 'Unlocked'),
      delete: action('Delete…', 'Delete', 'Deleted'),
    },
    /** `{action}` and `{mode}` are names of the menu and of the boot modes. */
    flashModeFirst: 'Its network boot flashes nothing: choose {action}, then {mode}.',
    withSkipped: '{summary} ({count} skipped: {reason})',
    withSkippedAlone: '{summary} ({count} skipped)',
    resultSentence: '{summary}.',
    nothingDone: {
      one: 'Nothing was changed: the machine was skipped. No batch was made.',
      other: 'Nothing was changed: all {count} machines were skipped. No batch was made.',
    },
    parameters: {
      title: { one: '{action}: {count} machine', other: '{action}: {count} machines' },
      addLabels: 'Add labels',
      addLabelsHint: 'Separate with commas.',
      removeLabels: 'Remove labels',
      captureNames: 'New images',
      /** `{name}`, `{mac}`: these two, in braces. */
      captureNamesHint: '{name} and {mac} stand for the name and the MAC address of each machine.',
      find: 'Find',
      noneMatches: 'No image matches.',
      tooMany: '{shown} of {count} images. Find one by a part of its name.',
    },
    typeDisks: 'Type {number}, the number of disks:',
    typeMachines: 'Type {number}, the number of machines:',
    changed: 'Something has changed since this was shown: look at it again.',
    typeToContinue: 'Type {number} to continue.',
    /** `{strong}` to `{end}` is emphasized. */
    erased: {
      one: '{strong}{count} disk will be erased and flashed{end} at the next network boot of these machines.',
      other:
        '{strong}{count} disks will be erased and flashed{end} at the next network boot of these machines.',
    },
    unlistedDisk: 'a disk that is not listed yet',
    /** `{disk}`: a serial number. */
    captured: '{disk} as {name}',
    groups: {
      erased: 'Disks that will be erased',
      machines: 'Machines',
      skipped: 'Skipped',
    },
    more: 'and {count} more',
    machines: { one: '{count} machine', other: '{count} machines' },
    deleted: 'Deleted. It reappears as discovered when it next boots from the network.',
    missing: 'It no longer exists.',
    follow: 'Follow this batch',
    back: 'Back to machines',
    empty: {
      title: 'No machines selected',
      text: 'Select machines, or all that match, and try again.',
    },
  },
} as const
