// Filters the entries of conversations. Without it, the page shows everything.
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
    var all = !wanted && !kind.value;
    document.querySelectorAll("section.conversation").forEach(function (each) {
      each.hidden = !all && !each.querySelector(".timeline > li:not([hidden])");
    });
    said.textContent = shown + " of " + items.length;
  }
  words.addEventListener("input", show);
  kind.addEventListener("change", show);
  show();
})();
