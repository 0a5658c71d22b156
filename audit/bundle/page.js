// Filters the timeline. Without it, the page shows everything.
(function () {
  "use strict";
  var box = document.getElementById("filter");
  if (!box) return;
  box.hidden = false;
  var words = box.querySelector("input"), kind = box.querySelector("select");
  var said = box.querySelector("output");
  var items = Array.prototype.slice.call(document.querySelectorAll(".timeline > li"));
  function show() {
    var wanted = words.value.trim().toLowerCase(), shown = 0;
    items.forEach(function (item) {
      var fits = (!kind.value || item.dataset.kind === kind.value) &&
        (!wanted || item.textContent.toLowerCase().indexOf(wanted) >= 0);
      item.hidden = !fits;
      shown += fits ? 1 : 0;
    });
    document.querySelectorAll("section.of-day").forEach(function (day) {
      day.hidden = !day.querySelector("li:not([hidden])");
    });
    said.textContent = shown + " of " + items.length;
  }
  words.addEventListener("input", show);
  kind.addEventListener("change", show);
  show();
})();
