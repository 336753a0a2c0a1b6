/** Milliseconds of processor time of this process, all cores together: a clock that other work on the machine hardly moves. */
export function processorClock(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}
